(function () {
  "use strict";
  /* The side navigation begins at this page's own link. */
  var pages = document.getElementById("pages"), here = pages.querySelector("[aria-current]");
  if (here) { pages.scrollTop = here.offsetTop - pages.offsetTop - pages.clientHeight / 2; }

  /* The key / begins a search, as on the pages of code hosts. */
  document.addEventListener("keydown", function (event) {
    var at = event.target;
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) { return; }
    if (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName)) { return; }
    event.preventDefault();
    var box = document.querySelector("#asked input") || document.querySelector(".find input");
    box.focus();
    box.select();
  });
})();
