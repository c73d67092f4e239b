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
    "kvadapters.gpu.store.init: lost: self.layers.release()": LET_GO,
    "kvadapters.gpu.store._staged: True became False": AS_MANY,
    "kvadapters.gpu.store.save: True became False": AS_MANY,
    # batch
    "kvadapters.gpu.batch.batch: if old is not None and made is not old: never": LET_GO,
    "kvadapters.gpu.batch.batch: lost: old.release()": LET_GO,
    "kvadapters.gpu.batch.free_batch: if self.batched is not None: never": LET_GO,
    "kvadapters.gpu.batch.free_batch: lost: self.batched.release()": LET_GO,
    "kvadapters.gpu.sequences.release: lost: self.memory.release()": LET_GO,
    "kvadapters.gpu.sequences.release: lost: self.input.release()": LET_GO,
    "kvadapters.gpu.sequences.scatter: lost: self.space.runtime.meter.device_to_device += layers * n * self.config.row_bytes": UNCOUNTED,
    "kvadapters.gpu.sequences.append: lost: self.space.runtime.meter.device_to_device += self.layers * m * self.config.row_bytes": UNCOUNTED,
    "kvadapters.gpu.sequences.scatter: max(widths): min": SHAPE,
    "kvadapters.gpu.sequences.scatter: 1 became 2": SHAPE,
    "kvadapters.gpu.sequences.scatter: 2 became 3": SHAPE,
    "kvadapters.gpu.sequences.scatter: 2 * heads: operator swapped": SHAPE,
    "kvadapters.gpu.sequences.append: max(widths): min": SHAPE,
    "kvadapters.gpu.sequences.append: 1 became 2": SHAPE,
    # places
    "kvadapters.gpu.places.straight: self.turn + rows <= self.wrap: LtE swapped": "rows are gathered that lie side by side already: a launch more, within what a read may cost",
    "kvadapters.gpu.places.holds: 0 <= self.turn < self.wrap: Lt swapped": "what it is asserted by is true",
    "kvadapters.gpu.places.holds: self.first + self.wrap: operator swapped": "what it is asserted by is true",
    "kvadapters.gpu.places.move: 2 became 3": "the values are written once more",
    "kvadapters.gpu.places.holds: self.first >= 0 and self.first + self.wrap <= self.place.slots: and/or swapped": "what it is asserted by is true",
    "kvadapters.gpu.places.holds: inside and 0 <= self.turn < self.wrap and (rows <= self.wrap): and/or swapped": "what it is asserted by is true",
    "kvadapters.gpu.places.straight: lost: return self.turn + rows <= self.wrap": "rows are gathered that lie side by side already: a launch more, within what a read may cost",
    "kvadapters.gpu.places.move: source.holds(rows) and target.holds(rows) and (target.turn == 0): and/or swapped": "what is asserted is true",
    "kvadapters.gpu.places.move: max(widths): min": SHAPE,
    "kvadapters.gpu.places.move: lost: runtime.meter.device_to_device += rows * geometry.row_bytes": UNCOUNTED,
    # attention
    "kvadapters.gpu.attention.prepare: -most // TILE: operator swapped": "more splits than tiles: those without a tile are left out when the others are joined",
    "kvadapters.gpu.attention.prepare: 2 became 3": "only more scratch space than partial results need",
    "kvadapters.gpu.attention.put: 1 became 2 #2": "one line of bytes: how many more lie behind it, nobody asks",
    "kvadapters.gpu.attention.put: 1 became 2 #4": "one line of bytes: how many more lie behind it, nobody asks",
    "kvadapters.gpu.attention._attend: queries * splits: operator swapped": SHAPE,
    "kvadapters.gpu.attention.output: lost: return self.out": "on the host the caller looks at the array that it handed in, which is written by then",
    # asking
    "kvadapters.gpu.asking.empty: if out is not None: never": NOWHERE,
    "kvadapters.gpu.asking.empty: lost: return out": NOWHERE,
    "kvadapters.gpu.asking.demand: True became False": AS_MANY,
    # attend_store and attending
    "kvadapters.gpu.attend_store.append: lost: raise NotImplementedError": ABSTRACT,
    "kvadapters.gpu.attend_store.demand_rows: lost: raise NotImplementedError": ABSTRACT,
    "kvadapters.gpu.attending.held_after: lost: raise NotImplementedError": ABSTRACT,
    "kvadapters.gpu.attending.slots_after: lost: raise NotImplementedError": ABSTRACT,
    "kvadapters.gpu.attending.in_order: lost: raise NotImplementedError": ABSTRACT,
    "kvadapters.gpu.attending.append: lost: raise NotImplementedError": ABSTRACT,
    "kvadapters.gpu.attend_store._one: 1 became 2": "only the text of a message",
    "kvadapters.gpu.attend_store.__init__: 1 became 2 #6": "only more scratch space than one row needs",
    # bucket
    "kvadapters.gpu.bucket.__init__: lost: self.fresh = self.behind = False": "looked at only where there are handles, and whoever installs them sets both",
    "kvadapters.gpu.bucket.__init__: False became True": "looked at only where there are handles, and whoever installs them sets both",
    "kvadapters.gpu.bucket._adopt: if self.handles is not None: never": LET_GO,
    "kvadapters.gpu.bucket._adopt: lost: self.handles.release()": LET_GO,
    "kvadapters.gpu.bucket._no_output: if out is not None: never": NOWHERE,
    "kvadapters.gpu.bucket._no_output: lost: return out": NOWHERE,
    "kvadapters.gpu.bucket._count: 1 became 2": NO_NUMBER,
    "kvadapters.gpu.graph.release: lost: self.rows.release()": LET_GO,
    "kvadapters.gpu.graph.compact: if slot != self.bound: always": "a row that is copied to where it stands: a launch, within what BUCKET-44 allows",
    "kvadapters.gpu.graph.fetched: if self.space.checks: never": CHECKS,
    "kvadapters.gpu.graph.fetched: if self.space.checks: always": CHECKS,
    "kvadapters.gpu.graph.fetched: lost: self.rows.check_guards()": CHECKS,
    "kvadapters.gpu.graph.of: 1 became 2 #1": "a byte more of a block that holds no row, and is not counted",
    "kvadapters.gpu.graph.fetched: True became False": AS_MANY,
    # page and pool
    "kvadapters.gpu.page.drop: lost: table.there.release()": LET_GO,
    "kvadapters.gpu.page.gather: lost: table, n = (list(map(index, table)), index(n))": "a trace holds whole numbers alone",
    "kvadapters.gpu.pool.gathered: if self.space.checks: never": CHECKS,
    "kvadapters.gpu.pool.gathered: if self.space.checks: always": CHECKS,
    "kvadapters.gpu.pool.gathered: lost: self.rows.check_guards()": CHECKS,
    "kvadapters.gpu.pool.peek: if self.space.checks: never": CHECKS,
    "kvadapters.gpu.pool.peek: if self.space.checks: always": CHECKS,
    "kvadapters.gpu.pool.peek: lost: self.rows.check_guards()": CHECKS,
    "kvadapters.gpu.pool._through: max(widths): min": SHAPE,
    "kvadapters.gpu.pool._through: 2 became 3": SHAPE,
    "kvadapters.gpu.pool.number: 1 became 2": SHAPE,
    "kvadapters.gpu.pool._through: lost: self.space.runtime.meter.device_to_device += rows.slots * geometry.row_bytes": UNCOUNTED,
    "kvadapters.gpu.pool._poison: -(keys + values) // LINE: operator swapped": SHAPE,
    "kvadapters.gpu.pool.runs: each[1] - each[0]: operator swapped": "pages come in ascending order: a launch for each of them instead of each run, which PAGE-40 and PAGE-41 allow",
    # rope and angles
    "kvadapters.gpu.rope.demand: 0 became 1 #1": "nobody looks at it: where no RoPE is asked for, nothing is turned",
    "kvadapters.gpu.rope._turn: lost: space.runtime.meter.device_to_device += sum((_nbytes(to) for _, to in turned))": UNCOUNTED,
    "kvadapters.gpu.rope._turn: width - dims // 2: operator swapped": SHAPE,
    "kvadapters.gpu.rope._turn: max(heads, others): min": SHAPE,
    "kvadapters.gpu.rope._turn: dims // 2: operator swapped #2": SHAPE,
    "kvadapters.gpu.rope._turn: 2 became 3 #4": SHAPE,
    "kvadapters.gpu.tables.table: lost: self._kept.move_to_end(key)": "which tables are kept: whoever asks for another has it made anew, to the same bits",
    "kvadapters.gpu.tables.table: False became True": "which tables are kept: whoever asks for another has it made anew, to the same bits",
    "kvadapters.gpu.tables.table: if key not in self._kept: always": "a table made and uploaded once more, to the same bits, which ROPE-29 and ROPE-30 allow",
    "kvadapters.gpu.tables._grow: 1 became 2 #1": "only larger places than are needed",
    "kvadapters.gpu.tables._grow: nbytes - 1: operator swapped": "only larger places than are needed",
    "kvadapters.gpu.tables._grow: 0 became 1": "there are four places or none, all of one size",
    "kvadapters.gpu.tables._grow: 1 became 2 #2": "tables are multiples of 8 bytes: none has one more than a power of 2",
    "kvadapters.gpu.angles._frequencies: 90 became 91": "one digit more than is kept anyway",
    "kvadapters.gpu.angles._fractions: 2 became 3 #1": "one column more, which nobody reads",
    "kvadapters.gpu.angles._fractions: 3 became 4": "digits 97 to 128 behind the point: they count only within 2^-45 turns of a whole quarter, and no position that a trace names is so near",
    "kvadapters.gpu.angles.table: True became False": AS_MANY,
    "kvadapters.gpu.angles._doubtful: np.abs(digits - (1 << 28)) <= DOUBT: LtE swapped": DOUBTED,
    "kvadapters.gpu.angles._doubtful: 1 became 2 #1": "doubt reaches 256 units: one more or less is nothing to it",
    "kvadapters.gpu.angles._surely: 0 became 1 #1": FAR_DIGITS,
    "kvadapters.gpu.angles._to_odd: 0 became 1": "a number in doubt has far more than 53 digits",
}
