"""Bugs of the catalogue that are bugs of copies and casts, planted in the reference's buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvconform.mutants.planting import planted
from kvref.copy import Buffer
from kvspec.contract import Pair
from kvspec.geometry import Array


@planted("DTYPE-03", breaks="COPY-12")
class RoundedTwice(Buffer):
    """Rows are rounded to 13 binary digits first, and again when they are stored."""

    def _cast(self, array: Array) -> Array:
        if array.dtype != np.float32 or self.config.dtype != "f16":
            return super()._cast(array)
        bits, step = array.view(np.uint32), np.uint32(1 << 11)
        return super()._cast(((bits + step // 2 - 1 + (bits // step & 1)) // step * step).view(np.float32))


@planted("GQA-01", breaks="COPY-2 COPY-3")
class QueryHeads(Buffer):
    """The strides are those of twice as many heads, so the rows of two heads overlap."""

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        for mine, new in zip(self.slots, rows, strict=True):
            for head in range(self.config.kv_heads):
                mine[slot, head // 2] = new[i, head]


@planted("GQA-03", breaks="COPY-17", anomaly="missing-refusal")
class OtherHeads(Buffer):
    """A source with other heads is accepted if the number of elements is right."""

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        heads, dims = self.config.kv_heads, (self.config.k_dim, self.config.v_dim)
        if [a.size for a in (keys, values)] == [len(keys) * heads * dim for dim in dims]:
            keys, values = (a.reshape(len(a), heads, -1) for a in (keys, values))
        super().copy(keys, values, n, at, sliding)


@planted("ASYNC-04", breaks="COPY-10", anomaly="aliased-array")
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
