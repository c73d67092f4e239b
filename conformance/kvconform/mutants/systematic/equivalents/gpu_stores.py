"""Mutants of the GPU's stores, batches, pages, buckets, attention and RoPE that no trace can find, and why."""

from __future__ import annotations

LET_GO = (
    "memory goes back with the last reference to it anyway, and what is held is counted from what a cache refers to"
)
ABSTRACT = "whatever attends has its own: this one is there for mypy"
AS_MANY = "there are as many of the one as of the other: strict only says so"
CHECKS = "guard bands are looked at for the suite's sake: nothing else comes of it while they are whole"
SHAPE = "only how many threads there are: every axis of the kernel strides, so that any number does all the work"
UNCOUNTED = (
    "costs are bounded from above: bytes that were not counted cannot be told from bytes that were not moved"
)
NOWHERE = "an output of no elements: where it lies cannot be seen, and the caller has the one that was handed in"
NO_NUMBER = "-2 is no number of rows either"
DOUBTED = "numbers at the edge of doubt are computed to the same bits both ways: only time"
FAR_DIGITS = (
    "some 2^-192 more or less: no cosine or sine of a position of 64 bits is so near to the middle of two numbers"
)

ARGUED: dict[str, str] = {
    # store
    "gpu/store.init: lost: self.layers.release()": LET_GO,
    "gpu/store._staged: True became False": AS_MANY,
    "gpu/store.save: True became False": AS_MANY,
    # batch
    "gpu/batch.batch: if old is not None and made is not old: never": LET_GO,
    "gpu/batch.batch: lost: old.release()": LET_GO,
    "gpu/batch.free_batch: if self.batched is not None: never": LET_GO,
    "gpu/batch.free_batch: lost: self.batched.release()": LET_GO,
    "gpu/batch_rows.release: lost: self.memory.release()": LET_GO,
    "gpu/batch_rows.release: lost: self.input.release()": LET_GO,
    "gpu/batch_rows.scatter: lost: self.space.runtime.meter.device_to_device += layers * n * self.config.row_bytes": UNCOUNTED,
    "gpu/batch_rows.append: lost: self.space.runtime.meter.device_to_device += self.layers * m * self.config.row_bytes": UNCOUNTED,
    "gpu/batch_rows.scatter: max(widths): min": SHAPE,
    "gpu/batch_rows.scatter: 1 became 2": SHAPE,
    "gpu/batch_rows.scatter: 2 became 3": SHAPE,
    "gpu/batch_rows.scatter: 2 * heads: operator swapped": SHAPE,
    "gpu/batch_rows.append: max(widths): min": SHAPE,
    "gpu/batch_rows.append: 1 became 2": SHAPE,
    # places
    "gpu/layout.straight: self.turn + rows <= self.wrap: LtE swapped": "rows are gathered that lie side by side already: a launch more, within what a read may cost",
    "gpu/layout.holds: 0 <= self.turn < self.wrap: Lt swapped": "what it is asserted by is true",
    "gpu/layout.holds: self.first + self.wrap: operator swapped": "what it is asserted by is true",
    "gpu/layout.move: 2 became 3": "the values are written once more",
    "gpu/layout.holds: self.first >= 0 and self.first + self.wrap <= self.place.slots: and/or swapped": "what it is asserted by is true",
    "gpu/layout.holds: inside and 0 <= self.turn < self.wrap and (rows <= self.wrap): and/or swapped": "what it is asserted by is true",
    "gpu/layout.straight: lost: return self.turn + rows <= self.wrap": "rows are gathered that lie side by side already: a launch more, within what a read may cost",
    "gpu/layout.move: source.holds(rows) and target.holds(rows) and (target.turn == 0): and/or swapped": "what is asserted is true",
    "gpu/layout.move: max(widths): min": SHAPE,
    "gpu/layout.move: lost: runtime.meter.device_to_device += rows * geometry.row_bytes": UNCOUNTED,
    # attention
    "gpu/attention.prepare: -most // TILE: operator swapped": "more splits than tiles: those without a tile are left out when the others are joined",
    "gpu/attention.prepare: 2 became 3": "only more scratch space than partial results need",
    "gpu/attention.put: 1 became 2 #2": "one line of bytes: how many more lie behind it, nobody asks",
    "gpu/attention.put: 1 became 2 #4": "one line of bytes: how many more lie behind it, nobody asks",
    "gpu/attention._attend: queries * splits: operator swapped": SHAPE,
    "gpu/attention.output: lost: return self.out": "on the host the caller looks at the array that it handed in, which is written by then",
    # asking
    "gpu/queries.empty: if out is not None: never": NOWHERE,
    "gpu/queries.empty: lost: return out": NOWHERE,
    "gpu/queries.demand: True became False": AS_MANY,
    # attend_store and attending
    "gpu/attention_store.append: lost: raise NotImplementedError": ABSTRACT,
    "gpu/attention_store.demand_rows: lost: raise NotImplementedError": ABSTRACT,
    "gpu/attention_cache.held_after: lost: raise NotImplementedError": ABSTRACT,
    "gpu/attention_cache.slots_after: lost: raise NotImplementedError": ABSTRACT,
    "gpu/attention_cache.in_order: lost: raise NotImplementedError": ABSTRACT,
    "gpu/attention_cache.append: lost: raise NotImplementedError": ABSTRACT,
    "gpu/attention_store._one: 1 became 2": "only the text of a message",
    "gpu/attention_store.__init__: 1 became 2 #6": "only more scratch space than one row needs",
    # bucket
    "gpu/bucket.__init__: lost: self.fresh = self.behind = False": "looked at only where there are handles, and whoever installs them sets both",
    "gpu/bucket.__init__: False became True": "looked at only where there are handles, and whoever installs them sets both",
    "gpu/bucket._adopt: if self.handles is not None: never": LET_GO,
    "gpu/bucket._adopt: lost: self.handles.release()": LET_GO,
    "gpu/bucket._no_output: if out is not None: never": NOWHERE,
    "gpu/bucket._no_output: lost: return out": NOWHERE,
    "gpu/bucket._count: 1 became 2": NO_NUMBER,
    "gpu/compiled_graph.release: lost: self.rows.release()": LET_GO,
    "gpu/compiled_graph.compact: if slot != self.bound: always": "a row that is copied to where it stands: a launch, within what BUCKET-44 allows",
    "gpu/compiled_graph.fetched: if self.space.checks: never": CHECKS,
    "gpu/compiled_graph.fetched: if self.space.checks: always": CHECKS,
    "gpu/compiled_graph.fetched: lost: self.rows.check_guards()": CHECKS,
    "gpu/compiled_graph.of: 1 became 2 #1": "a byte more of a block that holds no row, and is not counted",
    "gpu/compiled_graph.fetched: True became False": AS_MANY,
    # page and pool
    "gpu/page.drop: lost: table.there.release()": LET_GO,
    "gpu/page.gather: lost: table, n = (list(map(index, table)), index(n))": "a trace holds whole numbers alone",
    "gpu/page_pool.gathered: if self.space.checks: never": CHECKS,
    "gpu/page_pool.gathered: if self.space.checks: always": CHECKS,
    "gpu/page_pool.gathered: lost: self.rows.check_guards()": CHECKS,
    "gpu/page_pool.peek: if self.space.checks: never": CHECKS,
    "gpu/page_pool.peek: if self.space.checks: always": CHECKS,
    "gpu/page_pool.peek: lost: self.rows.check_guards()": CHECKS,
    "gpu/page_pool._through: max(widths): min": SHAPE,
    "gpu/page_pool._through: 2 became 3": SHAPE,
    "gpu/page_pool.number: 1 became 2": SHAPE,
    "gpu/page_pool._through: lost: self.space.runtime.meter.device_to_device += rows.slots * geometry.row_bytes": UNCOUNTED,
    "gpu/page_pool._poison: -(keys + values) // LINE: operator swapped": SHAPE,
    "gpu/page_pool.runs: each[1] - each[0]: operator swapped": "pages come in ascending order: a launch for each of them instead of each run, which PAGE-40 and PAGE-41 allow",
    # rope and angles
    "gpu/rope.demand: 0 became 1 #1": "nobody looks at it: where no RoPE is asked for, nothing is turned",
    "gpu/rope._turn: lost: space.runtime.meter.device_to_device += sum((_nbytes(to) for _, to in turned))": UNCOUNTED,
    "gpu/rope._turn: width - dims // 2: operator swapped": SHAPE,
    "gpu/rope._turn: max(heads, others): min": SHAPE,
    "gpu/rope._turn: dims // 2: operator swapped #2": SHAPE,
    "gpu/rope._turn: 2 became 3 #4": SHAPE,
    "gpu/rope_tables.table: lost: self._kept.move_to_end(key)": "which tables are kept: whoever asks for another has it made anew, to the same bits",
    "gpu/rope_tables.table: False became True": "which tables are kept: whoever asks for another has it made anew, to the same bits",
    "gpu/rope_tables.table: if key not in self._kept: always": "a table made and uploaded once more, to the same bits, which ROPE-29 and ROPE-30 allow",
    "gpu/rope_tables._grow: 1 became 2 #1": "only larger places than are needed",
    "gpu/rope_tables._grow: nbytes - 1: operator swapped": "only larger places than are needed",
    "gpu/rope_tables._grow: 0 became 1": "there are four places or none, all of one size",
    "gpu/rope_tables._grow: 1 became 2 #2": "tables are multiples of 8 bytes: none has one more than a power of 2",
    "gpu/rope_angles._frequencies: 90 became 91": "one digit more than is kept anyway",
    "gpu/rope_angles._fractions: 2 became 3 #1": "one column more, which nobody reads",
    "gpu/rope_angles._fractions: 3 became 4": "digits 97 to 128 behind the point: they count only within 2^-45 turns of a whole quarter, and no position that a trace names is so near",
    "gpu/rope_angles.table: True became False": AS_MANY,
    "gpu/rope_angles._doubtful: np.abs(digits - (1 << 28)) <= DOUBT: LtE swapped": DOUBTED,
    "gpu/rope_angles._doubtful: 1 became 2 #1": "doubt reaches 256 units: one more or less is nothing to it",
    "gpu/rope_angles._surely: 0 became 1 #1": FAR_DIGITS,
    "gpu/rope_angles._to_odd: 0 became 1": "a number in doubt has far more than 53 digits",
}
