(function () {
  "use strict";
  var byId = function (id) { return document.getElementById(id); };
  var all = function (selector, under) { return Array.from((under || document).querySelectorAll(selector)); };

  /* Filters: a row is shown when everything asked for holds of it. */
  var form = byId("filters");
  var rows = all(".matrix tr[id]").map(function (row) {
    return {
      row: row,
      chapter: row.parentNode.dataset.chapter,
      level: row.dataset.level,
      verdicts: row.dataset.verdicts.trim().split(" "),
      text: (row.id + " " + row.querySelector(".rule").textContent).toLowerCase()
    };
  });
  function wanted() {
    var value = function (name) { return form.elements[name].value; };
    return { text: value("text").trim().toLowerCase(), verdict: value("verdict"), chapter: value("chapter"), level: value("level") };
  }
  function holds(r, w) {
    var verdict = !w.verdict || (w.verdict === "!PASS"
      ? r.verdicts.some(function (v) { return v !== "PASS"; })
      : r.verdicts.indexOf(w.verdict) >= 0);
    return verdict && (!w.chapter || r.chapter === w.chapter) && (!w.level || r.level === w.level) &&
      w.text.split(/\s+/).every(function (word) { return r.text.indexOf(word) >= 0; });
  }
  /* Where nothing is asked for, clauses that nobody claims are folded, but the one that the address names: the line
     of their chapter counts them. */
  function folded(r, w) {
    return r.verdicts.join() === "NOT_CLAIMED" && location.hash !== "#" + r.row.id && Object.keys(w).every(function (name) { return !w[name]; });
  }
  /* The filters are in the address, behind #?, so that a link carries them; #CACHE-1 leads to a clause. */
  function remember(w) {
    var set = Object.keys(w).filter(function (name) { return w[name]; });
    var said = set.map(function (name) { return name + "=" + encodeURIComponent(w[name]); }).join("&");
    if (said || location.hash.indexOf("#?") === 0) { history.replaceState(null, "", "#" + (said && "?" + said)); }
  }
  function recall() {
    form.reset();
    new URLSearchParams(location.hash.slice(2)).forEach(function (value, name) {
      if (form.elements[name]) { form.elements[name].value = value; }
    });
    filter();
  }
  function filter() {
    var w = wanted(), shown = 0, left = 0, chapters = {};
    remember(w);
    rows.forEach(function (r) {
      var fits = holds(r, w), fold = folded(r, w);
      r.row.hidden = !fits || fold;
      shown += r.row.hidden ? 0 : 1;
      left += fold ? 1 : 0;
      if (fits) { chapters[r.chapter] = true; }
    });
    all(".matrix tbody").forEach(function (body) {
      body.hidden = !chapters[body.dataset.chapter];
    });
    byId("count").textContent = shown + " of " + rows.length + " clauses" + (left ? ", " + left + " not claimed are folded" : "");
    byId("nothing").hidden = shown + left > 0 || !rows.length;
  }
  form.hidden = !rows.length;
  form.addEventListener("input", filter);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("reset", function () { setTimeout(filter); });
  byId("all").addEventListener("click", function () { form.reset(); });

  /* A link to a clause opens it, whatever the filters hide. */
  function reveal() {
    if (location.hash.indexOf("#?") === 0) { recall(); byId("clauses").scrollIntoView(); return; }
    var target = byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) { return; }
    if (target.hidden) { form.reset(); filter(); }
    all("details", target).slice(0, target.tagName === "TR" ? 1 : 0).forEach(function (d) { d.open = true; });
    target.scrollIntoView();
  }
  if (location.hash.indexOf("#?") !== 0) { filter(); }
  window.addEventListener("hashchange", reveal);
  if (location.hash) { reveal(); }

  /* Copying: by the clipboard where the page may, else by selecting the text. */
  all(".copy").forEach(function (copy) {
    var source = copy.parentNode.querySelector("pre, code");
    var label = copy.textContent;
    copy.hidden = false;
    function say(text) { copy.textContent = text; setTimeout(function () { copy.textContent = label; }, 1600); }
    function select() { getSelection().selectAllChildren(source); say("Selected"); }
    copy.addEventListener("click", function () {
      if (!navigator.clipboard) { select(); return; }
      navigator.clipboard.writeText(source.textContent).then(function () { say("Copied"); }, select);
    });
  });
})();
