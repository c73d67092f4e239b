(function () {
  "use strict";
  /* Where a cache has several records, one is shown, and a slider goes through its versions. Without a script all are. */
  Array.from(document.querySelectorAll("tbody[data-versions]")).forEach(function (body) {
    var rows = Array.from(body.rows).reverse(), last = rows.length - 1;
    function show(number) {
      rows.forEach(function (row, i) {
        row.hidden = i !== number;
        var range = row.querySelector("input");
        range.value = number;
        range.setAttribute("aria-valuetext", row.dataset.version);
      });
    }
    rows.forEach(function (row) {
      var cell = row.cells[1], range = document.createElement("input");
      row.dataset.version = cell.textContent;
      range.type = "range"; range.min = 0; range.max = last;
      range.setAttribute("aria-label", "Version of " + body.dataset.versions);
      range.addEventListener("input", function () {
        var number = Number(range.value);
        show(number);
        rows[number].querySelector("input").focus();
      });
      cell.append(" ", range);
    });
    show(last);
  });
})();
