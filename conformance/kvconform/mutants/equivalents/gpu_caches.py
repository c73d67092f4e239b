"""Mutants of the GPU's growing and ring caches, snapshots, copies and rounds that no trace can find, and why."""

from __future__ import annotations

SHAPE = "the shape of a launch: in any shape a kernel does all the work, sooner or later"
GUARDS = "guard bands are looked at to find what others do wrong, and there are no others"
FORGOTTEN = "nobody else holds these rows, and memory that is forgotten is given back as well"
GIVEN_BACK = "what a device has left no operation tells; tests/test_gpu_residency.py looks whether all comes back"
COUNTED = "the meter is believed: whoever counts less than a bound allows is welcome"
ASSERTED = "an assertion for the reader: what is asserted is true, and so is what it became"
MESSAGE = "it is a number in the message of a refusal"
UNKNOWN = "any number below 0 is no number of rows"
FALSE = "none is as false"
FREE_GROWTH = "a ring's growth is free, and RESIDENCY-5 and -14 allow the buffer that this takes more or less"
TWICE_MOVED = (
    "by way of scratch space the same rows come to lie elsewhere in the buffer, within RESIDENCY-5's bounds"
)
ANOTHER_BUFFER = "a new buffer in the place of one that would do is what RESIDENCY-11 allows a restore"
ONE_DEVICE = "a trace has one adapter, and so one device; tests/test_gpu_residency.py and tests/test_gpu_equivalence.py have two"

_GROWING: dict[str, str] = {}

_RING = {
    "keep: lost: return False #1": FALSE,
    "keep: False became True #1": FORGOTTEN,
    "keep: if mine is None or seen + n > mine.slots: always": FREE_GROWTH,
    "slots_after: n > 1 and kept + n > now: and/or swapped": FREE_GROWTH,
    "_in_order: if rows is None or self.slots_after(n) != rows.slots: always": FREE_GROWTH,
    "_in_order: if newest.straight(kept) and begin + kept + n <= rows.slots: never": TWICE_MOVED,
    "_in_order: lost: return (begin, rows)": TWICE_MOVED,
    "_newest: self.store.rows is not None and 0 < kept <= self.filled: and/or swapped": ASSERTED,
    "_become: if rows is None or rows.slots < held: always": ANOTHER_BUFFER,
    "merge: lost: first.rows.release()": GIVEN_BACK,
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
    "put: 2 became 3": SHAPE,
    "put: 1 became 2 #1": "where lengths advance, the kernel leaves every work-group idle but the first",
    "put: 1 became 2 #2": "where lengths advance, the kernel leaves every work-group idle but the first",
    "put: lost: self.space.runtime.meter.device_to_device += groups * n * self.config.row_bytes": COUNTED,
    "read: if self.space.checks: never": GUARDS,
    "read: if self.space.checks: always": GUARDS,
    "read: lost: self.rows.check_guards()": GUARDS,
}

_MEM = {
    "_sequence: config.layers is not None and config.max_len is not None: and/or swapped": ASSERTED,
    "fit: left > 0: Gt swapped": "in no bytes fit no sequences, by division too",
    "fit: 0 became 1 #5": "one byte holds no sequence",
}

_RESIDENT = {
    "source: if not all(found) or any((a.runtime is not runtime for a in arrays)): never": ONE_DEVICE,
    "source: lost: raise ValueError('keys and values must both be on the host, or both on the device of this cache')": ONE_DEVICE,
    "source: not all(found) or any((a.runtime is not runtime for a in arrays)): and/or swapped": ONE_DEVICE,
}

ARGUED: dict[str, str] = {
    f"kvadapters.gpu.{module}.{name}": why
    for module, found in (
        ("growing", _GROWING),
        ("ring", _RING),
        ("slots", _SLOTS),
        ("snapshot", _SNAPSHOT),
        ("copy", _COPY),
        ("layers", _LAYERS),
        ("mem", _MEM),
        ("resident", _RESIDENT),
    )
    for name, why in found.items()
}
"""Mutants that no trace can find, each with the argument. `kvconform mutants --argued` tries them all the same."""
