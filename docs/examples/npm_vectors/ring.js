/** A ring in JavaScript. With BUG in the environment its rewind leaves the write cursor behind. */
export class Ring {
  slots = [];
  appended = 0;
  cursor = 0;
  fresh = 0;

  /** @param {number} window 0: it keeps every row */
  constructor(window) {
    this.window = window;
  }

  append(rows) {
    for (const row of rows) this.slots[this.cursor++] = row;
    this.appended += rows.length;
    this.fresh = rows.length;
  }

  rewind(offset) {
    if (offset < 0 || offset > this.appended) return false;
    if (this.window && this.appended > this.window && offset < this.appended) return false;
    this.appended = offset;
    if (!process.env.BUG) this.cursor = offset;
  }

  reset() {
    this.appended = this.cursor = 0;
  }

  offset() {
    return this.appended;
  }

  sees(query) {
    const end = this.appended - this.fresh + query + 1;
    return this.slots.slice(this.window ? Math.max(0, end - this.window) : 0, end);
  }
}
