"""Bugs of the catalogue that are bugs of copies and casts, planted in the reference's buffer."""

from __future__ import annotations

from typing import Any

from kvconform.bugs.planting import planted
from kvref.caches.copy import Buffer
from kvspec.contract import Pair
from kvspec.geometry import Array


@planted("GQA-01", breaks="COPY-2 COPY-3")
class QueryHeads(Buffer):
    """The strides are those of twice as many heads, so the rows of two heads overlap."""

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        for mine, new in zip(self.slots, rows, strict=True):
            for head in range(self.config.kv_heads):
                mine[slot, head // 2] = new[i, head]


@planted("ASYNC-04", breaks="CACHE-4", anomaly="aliased-array")
class NotWaitedFor(Buffer):
    """A copy continues after the call returns, reading memory that the caller already reuses."""

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        super().copy(keys, values, n, at, sliding)
        self.under_way = keys, values, n, at, sliding

    def read(self, what: Any) -> Pair:
        if hasattr(self, "under_way"):
            super().copy(*self.under_way)
        return super().read(what)


@planted("ASYNC-07", breaks="COPY-1 COPY-4", anomaly="lost-rows")
class ClearedLate(Buffer):
    """New memory is cleared after the first write to it."""

    cleared = False

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        super().copy(keys, values, n, at, sliding)
        if n and not self.cleared:
            self.keys[...], self.values[...], self.cleared = 0, 0, True
