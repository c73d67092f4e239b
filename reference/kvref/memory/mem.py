"""Planning memory: what an append will hold, and how many sequences fit.

A buffer and the one that replaces it exist together for a moment, so the peak counts both.
"""

from __future__ import annotations

from kvref.cite import cite
from kvref.memory.forms import Kept
from kvspec.geometry import Config
from kvspec.refusals import common as refusals

RESERVE = 3_500_000_000
"""Bytes left for other uses, by default."""

MOST = 32
"""Largest number of sequences, by default."""

LARGEST = (1 << 64) - 1
"""Stands for every product that is larger."""

Plan = tuple[int, int]
"""Bytes held afterwards, and at most meanwhile."""


def growing(config: Config, offset: int, capacity: int, n: int) -> Plan:
    """A growing cache: n rows behind the offset, by the rule of growth."""
    if n == 0 or offset + n <= capacity:
        return _kept(config, capacity)
    cite("MEM-2")
    kept = capacity if offset % config.step == 0 else offset
    return _replaced(config, capacity, kept + -(-n // config.step) * config.step)


def ring(config: Config, offset: int, capacity: int, n: int) -> Plan:
    """A ring: a decode grows it to the window or cuts it down to it, a prefill always makes new storage."""
    window = config.window or 0
    if n == 0:
        return _kept(config, capacity)
    cite("MEM-3")
    if n > 1:
        return _replaced(config, capacity, min(offset, capacity, window - 1) + n)
    if capacity > window:
        return _replaced(config, capacity, window)
    if offset < capacity or capacity == window:
        return _kept(config, capacity)
    return _replaced(config, capacity, capacity + min(config.step, window - capacity))


def held(config: Config, capacity: int) -> int:
    """Bytes of so many slots, and of the rows that are kept as they are beside them."""
    return capacity * config.row_bytes + (config.beside_bytes if capacity else 0)


def _kept(config: Config, capacity: int) -> Plan:
    return held(config, capacity), held(config, capacity)


def _replaced(config: Config, old: int, new: int) -> Plan:
    return held(config, new), held(config, new) + old * config.row_bytes


def sequence_bytes(config: Config) -> int:
    """Bytes of one sequence of a store: keys and values of all its layers, or the largest number there is."""
    assert config.layers is not None and config.max_len is not None
    row: int = config.changed(batch=1).row_bytes
    return min(LARGEST, int(config.layers * config.max_len) * row)


def fit(kind: str, config: Config, free: int, reserve: int | None, most: int | None) -> tuple[int, bool]:
    """The largest batch that fits into the free bytes, 1 at least; and whether even one sequence does."""
    largest = MOST if most is None else most
    if kind != "store":
        raise refusals.fit_kind("MEM-17", kind)
    if largest < 1:
        raise refusals.fit_most("MEM-16", largest)
    Kept(config)  # refuses a form that rows of these widths cannot have
    cite("MEM-12", "MEM-13" if reserve is None else "MEM-11", "MEM-14", *["ROW-31"] * (config.form is not None))
    each = sequence_bytes(config)
    if each == 0:
        cite("MEM-15")
        return largest, True
    room = max(0, free - (RESERVE if reserve is None else reserve)) // each
    return min(max(room, 1), largest), room >= 1
