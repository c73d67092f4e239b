/* Runs a script of a report against as much of a page as it asks for, without a browser: `node script_page.js`.
   Standard input: {script, rows: [{id, chapter, level, verdicts, rule}], pages, hash, search, enter: {field: value}}.
   Standard output: what is then shown, as JSON. */
"use strict";
const vm = require("node:vm");
const asked = JSON.parse(require("node:fs").readFileSync(0, "utf8"));

function element(more) {
  const heard = {};
  return {
    hidden: false, textContent: "", dataset: {}, children: [], scrolled: false,
    addEventListener: (event, listener) => { heard[event] = listener; },
    fire: (event) => heard[event] && heard[event]({ preventDefault() {} }),
    append(...children) { this.children.push(...children); },
    scrollIntoView() { this.scrolled = true; },
    ...more
  };
}

const bodies = {};
const rows = asked.rows.map((row) => {
  const body = bodies[row.chapter] ||= element({ dataset: { chapter: row.chapter }, rows: [], querySelectorAll: () => body.rows });
  const details = { open: false };
  const made = element({
    id: row.id, tagName: "TR", parentNode: body, details, dataset: { level: row.level, verdicts: row.verdicts },
    querySelector: () => ({ textContent: row.rule }), querySelectorAll: () => [details]
  });
  body.rows.push(made);
  return made;
});

const elements = Object.fromEntries(["text", "verdict", "chapter", "level", "q"].map((name) => [name, { value: "" }]));
const form = element({ elements, reset() { Object.values(elements).forEach((field) => { field.value = ""; }); form.fire("reset"); } });
const named = { filters: form, asked: form };
for (const id of ["count", "nothing", "all", "clauses", "found", "results"]) { named[id] = element(); }
rows.forEach((row) => { named[row.id] = row; });

const lists = { ".matrix tr[id]": rows, ".matrix tbody": Object.values(bodies), ".copy": [] };
const location = { hash: asked.hash || "", search: asked.search || "" };
const window = element();
vm.runInNewContext(asked.script, {
  document: {
    getElementById: (id) => named[id] || null,
    querySelectorAll: (selector) => lists[selector],
    createElement: () => element()
  },
  history: { replaceState: (state, title, address) => { location.hash = address === "#" ? "" : address; } },
  location, window, URLSearchParams, setTimeout, KVCONFORM_PAGES: asked.pages
});
if (asked.enter) {
  Object.entries(asked.enter).forEach(([name, value]) => { elements[name].value = value; });
  form.fire("input");
}
if (asked.then !== undefined) {
  location.hash = asked.then;
  window.fire("hashchange");
}
process.stdout.write(JSON.stringify({
  rows: rows.filter((row) => !row.hidden).map((row) => row.id),
  chapters: Object.entries(bodies).filter(([, body]) => !body.hidden).map(([name]) => name),
  open: rows.filter((row) => row.details.open).map((row) => row.id),
  fields: Object.fromEntries(Object.entries(elements).map(([name, field]) => [name, field.value])),
  hash: location.hash, count: named.count.textContent, nothing: !named.nothing.hidden, found: named.found.textContent,
  results: named.results.children.map((item) => item.children[0].href)
}));
