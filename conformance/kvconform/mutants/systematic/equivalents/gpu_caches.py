"""Mutants of the GPU's growing and ring caches, snapshots, copies and rounds that no trace can find, and why."""

from __future__ import annotations

SHAPE = "the shape of a launch: in any shape a kernel does all the work, sooner or later"
GUARDS = "guard bands are looked at to find what others do wrong, and there are no others"
FORGOTTEN = "nobody else holds these rows, and memory that is forgotten is given back as well"
GIVEN_BACK = "what a device has left no operation tells; tests/adapters/caches/test_residency.py looks whether all comes back"
COUNTED = "the meter is believed: whoever counts less than a bound allows is welcome"
MESSAGE = "it is a number in the message of a refusal"
UNKNOWN = "any number below 0 is no number of rows"
FALSE = "none is as false"
FREE_GROWTH = "a ring's growth is free, and RESIDENCY-5 and -14 allow the buffer that this takes more or less"
TWICE_MOVED = (
    "by way of scratch space the same rows come to lie elsewhere in the buffer, within RESIDENCY-5's bounds"
)
ANOTHER_BUFFER = "a new buffer in the place of one that would do is what RESIDENCY-11 allows a restore"
BAND = "a guard band that is longer or shorter guards as well"
SCRATCH = "scratch space that is longer than it need be serves as well"
GATHERED = "RESIDENCY-9 and -10 leave room to gather what is read, and what is gathered is the same"
ROOM = "room for drafts is made sooner or later, more or less: RESIDENCY-13 allows each draft a new buffer"
MISUSE = "no cache does while it captures, or to captured work, what this refuses; tests/adapters/runtimes/test_capture.py does"
NUMPY = "numpy takes any size below 0 for the one that is left"
NO_ROWS = "no rows are moved from nowhere"
ONE_DEVICE = "a trace has one adapter, and so one device; tests/adapters/caches/test_residency.py has two"

_RING = {
    "keep: seen + n > mine.slots: Gt swapped": FREE_GROWTH,
    "keep: False became True #2": FORGOTTEN,
    "slots_after: self.window - 1: operator swapped #1": FREE_GROWTH,
    "slots_after: self.window - 1: operator swapped #2": FREE_GROWTH,
    "_become: rows.slots < held: Lt swapped": ANOTHER_BUFFER,
    "mask: 0 became 1": "of no rows none is the oldest",
    "can_rewind: 0 <= to < self.offset: Lt swapped": "whether `to` is the offset is asked before",
    "keep: lost: return False #1": FALSE,
    "keep: False became True #1": FORGOTTEN,
    "keep: if mine is None or seen + n > mine.slots: always": FREE_GROWTH,
    "slots_after: n > 1 and kept + n > now: and/or swapped": FREE_GROWTH,
    "_in_order: if rows is None or self.slots_after(n) != rows.slots: always": FREE_GROWTH,
    "_in_order: if newest.straight(kept) and begin + kept + n <= rows.slots: never": TWICE_MOVED,
    "_in_order: lost: return (begin, rows)": TWICE_MOVED,
    "_in_order: begin + kept + n <= rows.slots: LtE swapped": TWICE_MOVED,
    "slots_after: min(self.filled, self.window - 1): max": FREE_GROWTH,
    "slots_after: kept + n > now: Gt swapped": FREE_GROWTH,
    "slots_after: n > 1: Gt swapped": "of one row both say the window, as it fits into all there is",
    "_become: if rows is None or rows.slots < held: always": ANOTHER_BUFFER,
    "merge: lost: first.rows.release()": GIVEN_BACK,
}

_BUFFERS = {
    "__init__: 2 * max(geometry.k_bytes, geometry.v_bytes): operator swapped": BAND,
    "__init__: 2 became 3": BAND,
    "__init__: max(geometry.k_bytes, geometry.v_bytes): min": BAND,
    "__init__: False became True": "where guard bands are looked at without being asked, they are sound",
    "_prepare: -words // LINE: operator swapped": SHAPE,
    "clear: -words // LINE: operator swapped": SHAPE,
    "clear: self.block.nbytes // 4: operator swapped": "only what lies between the ends of keys or of values is written",
    "release: lost: self.block.release()": GIVEN_BACK,
    "check_guards: if (found != GUARD).any(): never": GUARDS,
    "check_guards: lost: raise GuardBroken(f'the guard band {name} was overwritten at word {int(np.argmax(found != GUARD))}')": GUARDS,
    "check_guards: found != GUARD: NotEq swapped #2": MESSAGE,
    "scratch: 1 became 2 #1": SCRATCH,
    "scratch: 12 became 13": SCRATCH,
    "scratch: nbytes - 1: operator swapped": SCRATCH,
    "scratch: 1 became 2 #2": "it would be a byte short where one byte more than a power of two is asked for, and all elements have two bytes or more",
    "straightened: if source.straight(rows): never": GATHERED,
    "straightened: lost: return source": GATHERED,
}

_MASK = {
    "_slot_order: 1 became 2 #3": NUMPY,
}

_DRAFT = {
    "read: lost: self._demand_open('read')": "a round is read only just after a draft, while it is open",
    "__init__: if source is not None: always": NO_ROWS,
    "__init__: (cache.config.window or 1) - 1: operator swapped": ROOM,
    "__init__: 1 became 2 #1": ROOM,
    "__init__: 1 became 2 #2": ROOM,
    "put: if self.filled + n > rows.slots: always": ROOM,
    "put: self.filled + n > rows.slots: Gt swapped": ROOM,
    "_longer: if old is not None: always": "a round that takes drafts has a buffer",
    "end: lost: rows.release()": FORGOTTEN,
    "commit: 0 became 1 #2": "on no layers nothing is kept, however much",
}

_CAPTURE = {
    "refuse: if self._launches is not None: never": MISUSE,
    "refuse: lost: raise RuntimeError(f'{call} while capturing: captured work may launch kernels, and nothing else')": MISUSE,
    "record: lost: self.refuse('capture')": MISUSE,
    "replay: lost: self._recorder.refuse('replay')": MISUSE,
    "replay: lost: self._recording.check()": MISUSE,
    "check: if isinstance(arg, Block) and arg.handle is None: never": MISUSE,
    "check: lost: raise RuntimeError(f'replay: argument {i} of {kernel} was released since; capture it anew')": MISUSE,
    "replay: lost: self._recorder.meter.launches += 1": COUNTED,
    "replay: lost: self._recorder.meter.device_to_device += self._recording.moved": COUNTED,
    "replay: 1 became 2": "RESIDENCY-17 and -20 allow a replay the launch that this one does not need",
}

_SLOTS = {
    "adopt: if self.rows is not None and self.rows is not rows: never": FORGOTTEN,
    "adopt: lost: self.rows.release()": FORGOTTEN,
    "read: if self.space.checks: never": GUARDS,
    "read: if self.space.checks: always": GUARDS,
    "read: lost: self.rows.check_guards()": GUARDS,
    "rows_in: 1 became 2": UNKNOWN,
}

_SNAPSHOT = {
    "__init__: 0 became 1": "only a ring's snapshot has an index, and is always given it",
    "close: lost: self._rows.release()": GIVEN_BACK,
    "cut: lost: rows.release()": GIVEN_BACK,
    "demand: if ours: always": "a trace hands over only snapshots that the same adapter took",
    "demand: if given.rows.runtime is not runtime: never": ONE_DEVICE,
    "demand: lost: raise refusals.geometry(clause, what) #2": ONE_DEVICE,
}

_COPY = {
    "_demand_rows: 0 became 1 #2": MESSAGE,
    "_place: max(widths): min": SHAPE,
    "_place: 2 became 3": "the values are written once more",
    "_place: lost: self.space.runtime.meter.device_to_device += source.slots * geometry.row_bytes": COUNTED,
    "_source: 1 became 2 #2": NUMPY,
    "_kernel: geometry.k_bytes % (QUAD * size): operator swapped": "elements that could be cast together are cast one at a time",
    "_kernel: geometry.v_bytes % (QUAD * size): operator swapped": "elements that could be cast together are cast one at a time",
    "read: if self.space.checks: never": GUARDS,
    "read: if self.space.checks: always": GUARDS,
    "read: lost: self.rows.check_guards()": GUARDS,
}

_LAYERS = {
    "bound: 1 became 2": SHAPE,
    "put: False became True": "who fills a store sets all lengths afterwards",
    "put: max(k_bytes, v_bytes) // word: operator swapped": SHAPE,
    "put: max(k_bytes, v_bytes): min": SHAPE,
    "put: 2 * heads: operator swapped": SHAPE,
    "put: min(2 * heads, MOST_PARTS): max": SHAPE,
    "put: 2 became 3": SHAPE,
    "put: 1 became 2 #1": "where lengths advance, the kernel leaves every work-group idle but the first",
    "put: 1 became 2 #2": "where lengths advance, the kernel leaves every work-group idle but the first",
    "put: lost: self.space.runtime.meter.device_to_device += groups * n * self.config.row_bytes": COUNTED,
    "read: if self.space.checks: never": GUARDS,
    "read: if self.space.checks: always": GUARDS,
    "read: lost: self.rows.check_guards()": GUARDS,
}

_MEM = {
    "fit: left > 0: Gt swapped": "in no bytes fit no sequences, by division too",
    "fit: 0 became 1 #5": "one byte holds no sequence",
}

_RESIDENT = {
    "__getitem__: 0 became 1 #2": "a part has rows: a copy of none has ended before",
    "__getitem__: 1 became 2 #2": "of a part only the number of rows is asked for",
    "placed: 1 became 2 #2": NUMPY,
    "placed: -a.nbytes // APART: operator swapped": "arrays that lie farther apart lie apart",
    "source: if not all(found) or any((a.runtime is not runtime for a in arrays)): never": ONE_DEVICE,
    "source: lost: raise ValueError('keys and values must both be on the host, or both on the device of this cache')": ONE_DEVICE,
    "source: not all(found) or any((a.runtime is not runtime for a in arrays)): and/or swapped": ONE_DEVICE,
}

ARGUED: dict[str, str] = {
    f"gpu/{label}.{name}": why
    for label, found in (
        ("ring", _RING),
        ("buffers", _BUFFERS),
        ("mask", _MASK),
        ("draft", _DRAFT),
        ("capture", _CAPTURE),
        ("cache_rows", _SLOTS),
        ("snapshot", _SNAPSHOT),
        ("copy", _COPY),
        ("row_groups", _LAYERS),
        ("mem", _MEM),
        ("device_arrays", _RESIDENT),
    )
    for name, why in found.items()
}
"""Mutants that no trace can find, each with the argument. `kvconform mutants --argued` tries them all the same."""
