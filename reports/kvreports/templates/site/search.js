(function () {
  "use strict";
  /* Every word must be there, and what stands in quotes as it stands; an id or a title that begins with what was asked comes first. */
  var asked = new URLSearchParams(location.search).get("q") || "", form = document.getElementById("asked");
  form.elements.q.value = asked;
  var parts = asked.replace(/[“”„«»]/g, '"').toLowerCase().match(/"[^"]*"|[^\s"]+/g) || [];
  var words = parts.map(function (w) { return w.replace(/"/g, "").trim().replace(/\s+/g, " "); }).filter(Boolean);
  if (!words.length) { return; }
  var found = KVCONFORM_PAGES.map(function (page) {
    var title = page[0].toLowerCase(), text = title + " " + page[2].toLowerCase();
    if (!words.every(function (w) { return text.indexOf(w) >= 0; })) { return null; }
    var score = title === words.join(" ") ? 3 : title.indexOf(words[0]) === 0 ? 2 : words.every(function (w) { return title.indexOf(w) >= 0; }) ? 1 : 0;
    return { page: page, score: score };
  }).filter(Boolean).sort(function (a, b) { return b.score - a.score; });
  var told = found.length ? found.length + (found.length === 1 ? " page" : " pages") + " for “" + asked + "”" : "No page has “" + words.join("” and “") + "”. Try fewer words.";
  document.getElementById("found").textContent = told;
  found.slice(0, 100).forEach(function (f) {
    var item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("span");
    link.href = "../" + f.page[1];
    link.textContent = f.page[0];
    var at = Math.max(0, f.page[2].toLowerCase().indexOf(words[0]) - 80);
    text.textContent = " " + (at ? "… " : "") + f.page[2].slice(at, at + 240).replace(at ? /^\S*\s/ : /^/, "") + (f.page[2].length > at + 240 ? " …" : "");
    item.append(link, text);
    document.getElementById("results").append(item);
  });
})();
