"""Rows by their content: rows of equal bytes have one name, the serial of the first of them.

A cache may store equal rows once, or hand out one of them in another's place: no query can tell. So contents are
compared, keys and values of all heads together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set

import numpy as np

from kvspec.geometry import Array

Settle = Callable[[Array], Array]
Rows = Mapping[int, tuple[Array, Array]]
"""Key and value row `[B, H, dim]` of each serial, as the cache holds them."""


class Contents:
    """The names of all rows of one trace, for each sequence of a batch by itself.

    `settled` has the serials of rows that were cast, whose NaN may have other bits. `by_value` has the serials of
    rows whose keys are not stored as they were made. Both grow with the trace. `heads` are those whose content
    counts."""

    def __init__(
        self, rows: Rows, settled: Set[int], by_value: Set[int], settle: Settle, heads: slice = slice(None)
    ) -> None:
        self._rows, self._settled, self._by_value, self._settle = rows, settled, by_value, settle
        self._heads = heads
        self._entered = 0
        self._firsts: list[dict[bytes, int]] = []
        self._names: list[dict[int, int]] = []
        self._copies: list[Counter[int]] = []

    def enter(self, end: int) -> None:
        """Enter all rows with serials below `end`: the trace has taken them, and their content stays."""
        for serial in range(self._entered, end):
            for sequence, (key, value) in enumerate(zip(*self._rows.get(serial, ((), ())), strict=True)):
                self._enter(serial, sequence, key[self._heads], value[self._heads])
        self._entered = max(self._entered, end)

    def leave(self, start: int) -> None:
        """Forget the rows with serials from `start` on, which were entered and not taken."""
        for sequence, names in enumerate(self._names):
            while names and next(reversed(names)) >= start:
                self._copies[sequence][names.popitem()[1]] -= 1
            firsts = self._firsts[sequence]
            while firsts and next(reversed(firsts.values())) >= start:
                firsts.popitem()
        self._entered = min(self._entered, start)

    def _enter(self, serial: int, sequence: int, key: Array, value: Array) -> None:
        if sequence == len(self._firsts):
            self._firsts.append({})
            self._names.append({})
            self._copies.append(Counter())
        firsts, content = self._firsts[sequence], self._content(serial, key, value)
        name = self._names[sequence][serial] = firsts.setdefault(content, serial)
        self._copies[sequence][name] += 1

    def _content(self, serial: int, key: Array, value: Array) -> bytes:
        if serial in self._by_value:
            return b"value" + value.tobytes()
        if serial in self._settled and (np.isnan(key).any() or np.isnan(value).any()):
            return b"cast" + self._settle(key).tobytes() + self._settle(value).tobytes()
        return key.tobytes() + value.tobytes()

    def named(self, serials: Iterable[int], sequence: int = 0) -> list[int]:
        """The names of rows; a serial itself where its content is not known. Rows that were made for one sequence
        alone are the same whichever it is."""
        own, only = (self._names[i] if i < len(self._names) else {} for i in (sequence, 0))
        return [own.get(serial, only.get(serial, serial)) for serial in serials]

    def copies(self, name: int, sequence: int = 0) -> int:
        """How many rows of this name there were in the trace; 1 where its content is not known."""
        return max(1, self._copies[sequence][name]) if sequence < len(self._copies) else 1

    def read(self, keys: Array, values: Array, unknown: int) -> Array:
        """The names `[B, n]` of the rows in keys and values `[B, H, n, dim]`; `unknown` for content of no row."""
        raw = [np.ascontiguousarray(a.transpose(0, 2, 1, 3)) for a in (keys, values)]
        names = np.full(raw[0].shape[:2], unknown)
        for sequence, firsts in enumerate(self._firsts[: len(names)]):
            pairs = zip(*(a[sequence] for a in raw), strict=True)
            names[sequence] = [self._found(firsts, unknown, key, value) for key, value in pairs]
        return names

    def _found(self, firsts: Mapping[bytes, int], unknown: int, key: Array, value: Array) -> int:
        found = firsts.get(key.tobytes() + value.tobytes())
        if found is None and self._by_value:
            found = firsts.get(b"value" + value.tobytes())
        if found is None and self._settled:
            found = firsts.get(b"cast" + self._settle(key).tobytes() + self._settle(value).tobytes())
        return unknown if found is None else found
