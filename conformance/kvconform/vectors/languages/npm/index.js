/**
 * kvconform: frozen traces of KV caches, and a reader that replays them. Plain JavaScript, no dependencies.
 *
 * @SAID@.
 *
 * Give `check` a function that opens your cache: it says of each trace that went otherwise what was expected. A row is
 * a number: append rows whose keys and values you make from these numbers, and answer which numbers a query sees. Each
 * method may give a promise. Written by `kvconform vectors npm`. CC0.
 */
import { readFileSync } from "node:fs";

/**
 * @typedef {object} Step
 * @property {"append" | "rewind" | "reset"} op
 * @property {number[]} [rows] what is appended
 * @property {number} [to] the offset that is rewound to; it can be negative, and is then refused
 * @property {boolean} refused
 * @property {number} offset rows appended since the last reset, less those rewound
 * @property {number[][]} sees the rows that each query of an append sees, in any order
 *
 * @typedef {object} Trace
 * @property {string} words id and trace
 * @property {number} window 0 where the cache keeps every row
 * @property {Step[]} steps
 *
 * @typedef {object} Cache A method gives `false` where it refuses. What is thrown counts as an error of the cache.
 * @property {(rows: number[]) => unknown} append
 * @property {(offset: number) => unknown} [rewind] left out by a cache that has no rewind
 * @property {() => unknown} [reset] left out by a cache that has no reset
 * @property {() => number | Promise<number>} offset
 * @property {(query: number) => number[] | Promise<number[]>} sees the rows that a query of the last append sees
 * @property {() => unknown} [close] gives back what the cache holds, once a trace is done
 *
 * @typedef {(window: number) => Cache | Promise<Cache>} Open
 */

/** @type {Trace[]} */
export const traces = JSON.parse(readFileSync(new URL("./traces.json", import.meta.url), "utf8"));

/**
 * Replay all that the cache claims: traces that need a rewind or reset that it lacks are left out.
 * @param {Open} open
 * @returns {Promise<{judged: number, all: number, wrong: string[]}>}
 */
export async function check(open) {
  const cache = await open(0);
  const claimed = traces.filter((trace) => claims(cache, trace));
  await cache.close?.();
  const wrong = [];
  for (const trace of claimed) {
    const said = await replay(open, trace);
    if (said !== null) wrong.push(said);
  }
  return { judged: claimed.length, all: traces.length, wrong };
}

/**
 * Replay one trace; give what went otherwise, or null.
 * @param {Open} open
 * @param {Trace} trace
 * @returns {Promise<string | null>}
 */
export async function replay(open, trace) {
  const cache = await open(trace.window);
  try {
    for (const [i, step] of trace.steps.entries()) {
      const said = await perform(cache, step).catch((error) => `threw ${error}`);
      if (said !== null) return `${trace.words}\n  step ${i + 1}: ${said}`;
    }
    return null;
  } finally {
    await cache.close?.();
  }
}

/** @param {Cache} cache @param {Trace} trace */
function claims(cache, trace) {
  return trace.steps.every(({ op }) => op === "append" || typeof cache[op] === "function");
}

/** @param {Cache} cache @param {Step} step @returns {Promise<string | null>} */
async function perform(cache, step) {
  const argument = { append: step.rows, rewind: step.to, reset: undefined }[step.op];
  const refused = (await /** @type {any} */ (cache)[step.op](argument)) === false;
  if (refused !== step.refused) return refused ? "refused, expected to be done" : "done, expected to be refused";
  const offset = await cache.offset();
  if (offset !== step.offset) return `offset ${offset}, expected ${step.offset}`;
  for (const [query, expected] of step.sees.entries()) {
    const found = await cache.sees(query);
    if (!same(found, expected)) return `query ${query} sees rows ${found.join(", ")}; expected ${expected.join(", ")}`;
  }
  return null;
}

/** Whether these are the same rows, each once. @param {number[]} found @param {number[]} expected */
function same(found, expected) {
  const rows = new Set(found);
  return found.length === expected.length && expected.every((row) => rows.has(row));
}
