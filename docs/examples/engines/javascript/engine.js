#!/usr/bin/env node
// A KV cache in JavaScript and its wire: growing caches, rings and masks, at level storage, with Node alone.
//
//     kvconform run -- node engine.js
//
// The first half is the cache: put your own in its place. The second half is the wire: keep it.
// KV_SLIP=rewind in the environment plants a bug: after a rewind the next row goes one slot too far in a ring.

"use strict";
const fs = require("node:fs");

const slip = (name) => Number(process.env.KV_SLIP === name);

// ---- the cache ----------------------------------------------------------------------------------------------

/** The cache says no, by the clause of the spec that allows it, and has changed nothing. */
class Refused extends Error {
  constructor(clause) {
    super(clause);
    this.clause = clause;
  }
}

/** Every row is kept. A row is opaque here; `slots` are the rows by their places in storage. */
class Growing {
  constructor() {
    this.free();
  }

  free() {
    this.slots = [];
    this.offset = 0; // tokens appended and not rolled back: the next position
    this.written = false;
    this.queries = null; // rows of the last append; null where it is no longer the last
  }

  /** Rows that may be read; slots behind them hold dead rows. */
  get held() {
    return Math.min(this.offset, this.slots.length);
  }

  append(rows) {
    this.queries = rows.length;
    if (rows.length === 0) return;
    this.put(rows);
    this.offset += rows.length;
    this.written = true;
  }

  put(rows) {
    this.slots = [...this.slots.slice(0, this.offset), ...rows];
  }

  history() {
    return this.slots.slice(0, this.held);
  }

  state() {
    return this.written ? this.history() : null;
  }

  view() {
    return this.state();
  }

  canRewind(to) {
    return to >= 0 && to <= this.offset;
  }

  rewind(to) {
    if (!this.canRewind(to)) throw new Refused("CACHE-7");
    this.offset = to;
    this.queries = null;
  }

  /** The mask of parts, with a column for each row of the history, in its order; null hides nothing. */
  mask(parts, batch) {
    if (this.queries === null) throw new Refused("MASK-1");
    checkArrays(parts, batch, this.queries, this.held);
    return inPositionOrder(parts, this.queries, this.held);
  }
}

/** The newest rows of a window are kept; `index` is the slot behind the newest row. */
class Ring extends Growing {
  constructor(window) {
    super();
    this.window = window;
  }

  free() {
    super.free();
    this.index = 0;
  }

  put(rows) {
    if (rows.length === 1) this.putOne(rows[0]);
    else this.putChunk(rows);
  }

  /** One row takes the slot of the oldest, once there are as many as the window. */
  putOne(row) {
    if (this.slots.length > this.window) {
      this.slots = this.slots.slice(-this.window); // the last chunk left more than the window
      this.index = this.window;
    }
    if (this.index === this.window) this.index = 0;
    this.slots[this.index++] = row;
  }

  /** A chunk goes behind the newest W-1 rows, oldest first, so that its first query finds its whole window. */
  putChunk(rows) {
    const live = this.inOrder();
    this.slots = [...live.slice(Math.max(0, live.length - (this.window - 1))), ...rows];
    this.index = this.slots.length;
  }

  /** All rows held, oldest first. */
  inOrder() {
    const wrapped = this.offset > this.window;
    return wrapped ? [...this.slots.slice(this.index), ...this.slots.slice(0, this.index)] : this.history();
  }

  view() {
    const live = this.inOrder();
    const rows = live.slice(Math.max(0, live.length - (this.window - 1)));
    return rows.length ? rows : null;
  }

  canRewind(to) {
    return to === this.offset || (to >= 0 && to < this.offset && this.offset <= this.window);
  }

  rewind(to) {
    if (to < 0 || to > this.offset) throw new Refused("CACHE-7");
    if (!this.canRewind(to)) throw new Refused("RING-10");
    if (to < this.offset) this.index = to + slip("rewind");
    this.offset = to;
    this.queries = null;
  }

  /** With several queries the window is hidden by the mask; with one, storage holds no more than the window. */
  mask(parts, batch) {
    const own = this.queries > 1 ? [{ window: this.window }] : [];
    const mask = super.mask([...parts, ...own], batch);
    if (mask === null || this.queries !== 1 || mask.shape[3] === 1) return mask;
    const [rows, index] = [this.held, this.index];
    return { ...mask, at: (b, h, i, slot) => mask.at(b, h, i, (slot - index + rows) % rows) };
  }
}

// A mask is `{dtype, shape: [1 or B, 1 or heads, queries, rows or 1], at(b, h, i, j)}`: booleans, true where a query
// may attend; or f32, added to the scores. Parts of a mask are "causal", `{window}` and masks.

function checkArrays(parts, batch, queries, rows) {
  const arrays = parts.filter((part) => part.shape);
  for (const { shape } of arrays) {
    if (shape.length !== 4 || ![1, batch].includes(shape[0]) || shape[2] !== queries) throw new Refused("MASK-13");
    if (![1, rows].includes(shape[3])) throw new Refused("MASK-12");
  }
  const heads = new Set(arrays.map((a) => a.shape[1]).filter((n) => n !== 1));
  if (heads.size > 1 || heads.has(0) || parts.some((part) => part.window < 1)) throw new Refused("MASK-13");
}

/** Query i is the token `rows - queries + i` of those held, counted from the oldest. */
function inPositionOrder(parts, queries, rows) {
  const shape = [1, 1, queries, rows];
  const made = (at) => ({ dtype: "bool", shape, at });
  const masks = [];
  for (const part of parts) {
    if (part.shape) masks.push(part);
    else if (part === "causal" && queries > 1) masks.push(made((b, h, i, j) => j <= rows - queries + i));
    else if (part.window && queries) masks.push(made((b, h, i, j) => rows - queries + i - j < part.window));
  }
  return masks.length ? masks.reduce(both) : null;
}

function both(one, two) {
  const shape = one.shape.map((n, axis) => (n === 1 ? two.shape[axis] : n));
  const place = (mask, at) => mask.at(...at.map((i, axis) => (mask.shape[axis] === 1 ? 0 : i)));
  if (one.dtype === two.dtype && one.dtype === "bool")
    return { dtype: "bool", shape, at: (...at) => place(one, at) && place(two, at) };
  const score = (mask, at) => (mask.dtype === "f32" ? place(mask, at) : place(mask, at) ? 0 : -Infinity);
  const sum = (a, b) => (a === -Infinity || b === -Infinity ? -Infinity : Math.fround(a + b)); // hidden stays hidden
  return { dtype: "f32", shape, at: (...at) => sum(score(one, at), score(two, at)) };
}

// ---- the wire: a question is a line of JSON and the bytes of its tensors, and so is an answer ---------------

const BYTES = { f32: 4, f16: 2, bf16: 2, bool: 1 };
const size = (dtype, shape) => shape.reduce((a, b) => a * b, BYTES[dtype]);

/** Reads standard input as it is asked for. */
class Reader {
  buffer = Buffer.alloc(0);

  more() {
    const chunk = Buffer.alloc(1 << 18);
    const n = fs.readSync(0, chunk);
    this.buffer = Buffer.concat([this.buffer, chunk.subarray(0, n)]);
    return n > 0;
  }

  /** The next n bytes, or null at the end. */
  take(n) {
    while (this.buffer.length < n) if (!this.more()) return null;
    const taken = this.buffer.subarray(0, n);
    this.buffer = this.buffer.subarray(n);
    return taken;
  }

  /** The next question, its tensors by name; null at the end. */
  question() {
    while (!this.buffer.includes(10)) if (!this.more()) return null;
    const question = JSON.parse(this.take(this.buffer.indexOf(10) + 1).toString());
    const listed = question.tensors ?? [];
    question.tensors = {};
    for (const [name, dtype, shape] of listed)
      question.tensors[name] = { dtype, shape, data: this.take(size(dtype, shape)) };
    return question;
  }
}

function send(head, tensors = []) {
  const listed = tensors.map(({ name, dtype, shape }) => [name, dtype, shape]);
  const line = JSON.stringify(listed.length ? { ...head, tensors: listed } : head) + "\n";
  const bytes = Buffer.concat([Buffer.from(line), ...tensors.map((t) => t.data)]);
  for (let at = 0; at < bytes.length; ) at += fs.writeSync(1, bytes, at);
}

/** The rows of keys and values `[B, H, n, dim]`: a row is the bytes of each head's key, and of its value. */
function rowsOf({ keys, values }) {
  const [batch, kvHeads, n] = keys.shape;
  const row = (t, i) =>
    Array.from({ length: batch * kvHeads }, (_, head) => {
      const width = size(t.dtype, [t.shape[3]]);
      return Buffer.from(t.data.subarray((head * n + i) * width, (head * n + i + 1) * width));
    });
  return Array.from({ length: n }, (_, i) => ({ k: row(keys, i), v: row(values, i) }));
}

/** Rows as two tensors; null is told by a dtype of null. */
function pair(name, rows, config) {
  return ["k", "v"].map((part) => {
    if (rows === null) return { name: `${name}.${part}`, dtype: null, shape: [], data: Buffer.alloc(0) };
    const shape = [config.batch, config.kv_heads, rows.length, config[`${part}_dim`]];
    const heads = Array.from({ length: shape[0] * shape[1] }, (_, head) => rows.map((row) => row[part][head]));
    return { name: `${name}.${part}`, dtype: config.dtype, shape, data: Buffer.concat(heads.flat()) };
  });
}

function maskTensor(mask) {
  if (mask === null) return { name: "mask", dtype: null, shape: [], data: Buffer.alloc(0) };
  const [batch, heads, queries, rows] = mask.shape;
  const values = [];
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let i = 0; i < queries; i++) for (let j = 0; j < rows; j++) values.push(mask.at(b, h, i, j));
  const data = mask.dtype === "bool" ? Uint8Array.from(values) : Float32Array.from(values);
  return { name: "mask", dtype: mask.dtype, shape: mask.shape, data: Buffer.from(data.buffer) };
}

/** An explicit mask that came as a tensor. */
function maskOf({ dtype, shape, data }) {
  const at = (b, h, i, j) => {
    const place = ((b * shape[1] + h) * shape[2] + i) * shape[3] + j;
    return dtype === "bool" ? data[place] !== 0 : data.readFloatLE(4 * place);
  };
  return { dtype, shape, at };
}

let caches = {}; // by letter: {cache, config}
let observe = [];

function open(name, kind, config) {
  const sizes = [config.batch, config.kv_heads, config.k_dim, config.v_dim, config.step, config.window ?? 1];
  const valid = sizes.every((n) => n >= 1) && config.dtype in BYTES && config.dtype !== "bool";
  if (kind !== "growing" && kind !== "ring") return "unsupported";
  if (!valid || (kind === "ring" && !config.window)) throw new Refused("CACHE-3");
  caches[name] = { cache: kind === "ring" ? new Ring(config.window) : new Growing(), config };
  return "ok";
}

function append({ cache, config }, { keys, values }, tensors) {
  const n = keys.shape[2];
  const shape = (dim) => `${[config.batch, config.kv_heads, n, dim]}`;
  const fits = (t, dim) => t.dtype === config.dtype && `${t.shape}` === shape(dim);
  if (n && !(fits(keys, config.k_dim) && fits(values, config.v_dim))) throw new Refused("CACHE-2");
  cache.append(n ? rowsOf({ keys, values }) : []);
  if (observe.includes("history")) tensors.push(...pair("history", cache.history(), config));
  if (observe.includes("mask")) tensors.push(maskTensor(cache.mask(["causal"], config.batch)));
}

/** Do what is asked; adds to values and tensors, and gives the result. */
function perform(question, values, tensors) {
  const name = question.cache ?? "A";
  if (question.op === "begin") {
    caches = {};
    observe = question.observe;
  }
  if (question.op === "begin" || question.op === "open") return open(name, question.kind, question.config);
  if (!(name in caches)) return "absent";
  const { cache, config } = caches[name];
  if (question.op === "append" && !question.resident) append(caches[name], question.tensors, tensors);
  else if (question.op === "view") tensors.push(...pair("view", cache.view(), config));
  else if (question.op === "ask") values.can = cache.canRewind(question.to);
  else if (question.op === "rewind") {
    values.can = cache.canRewind(question.to);
    cache.rewind(question.to);
  } else if (question.op === "free") cache.free();
  else if (question.op === "mask" && !question.round) {
    const parts = question.parts.map((part) => (part.tensor ? maskOf(question.tensors[part.tensor]) : part));
    tensors.push(maskTensor(cache.mask(parts, config.batch)));
  } else if (question.op !== "scribble") return "unsupported"; // scribble is the caller's affair
  return "ok";
}

/** The answer: the result, then what can be seen of the cache, whether it did what was asked or not. */
function answer(question) {
  const [values, tensors] = [{}, []];
  const head = { id: question.id };
  try {
    head.result = perform(question, values, tensors);
  } catch (error) {
    Object.assign(head, { result: error.clause ? "refused" : "error", message: String(error) });
    if (error.clause) head.clause = error.clause;
  }
  const opened = caches[question.cache ?? "A"];
  if (opened) {
    const { cache, config } = opened;
    const lengths = { offset: cache.offset, retained: cache.held, buffered: cache.held };
    Object.assign(values, lengths, { capacity: cache.slots.length });
    if (observe.includes("state")) tensors.push(...pair("state", cache.state(), config));
  }
  send({ ...head, values }, tensors);
}

const describe = { name: "example-javascript", chapters: { growing: "storage", ring: "storage", mask: "storage" } };
const reader = new Reader();
for (let question; (question = reader.question()); ) {
  if (question.op === "describe") send({ id: question.id, result: "ok", describe });
  else answer(question);
}
