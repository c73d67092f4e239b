"""Common bugs: rows that are missing."""

from __future__ import annotations

import numpy as np

from kvconform.mutants.planting import Over, planted
from kvref.copy import Buffer
from kvref.growing import Growing
from kvref.rows import count
from kvref.snapshot import Snapshot
from kvspec.contract import Pair
from kvspec.geometry import Array


@planted("lost-rows", breaks="SNAP-1")
class GrowingSavesOneLess(Growing):
    """A snapshot lacks the newest row."""

    def snapshot(self, start: int) -> Snapshot | None:
        self.offset -= self.offset > 0
        try:
            return super().snapshot(start)
        finally:
            self.offset += self.written


@planted("hole", breaks="GROW-1 GROW-14")
class GrowingSkips(Growing):
    """The first single row after a chunk is written one slot too far."""

    chunk = False

    def _feed(self, new: Pair) -> None:
        if self.chunk and count(new) == 1:
            super()._feed(Pair(*(np.full_like(a, np.nan) for a in new)))
        self.chunk = count(new) > 1
        super()._feed(new)


@planted("overwritten-rows", breaks="COPY-7 COPY-9")
class CopyOneMore(Buffer):
    """A copy takes one row more than asked for, if its source has one."""

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        super().copy(keys, values, n, at, sliding)
        if 0 < n < len(keys) and at + n < self.capacity:
            super().copy(keys[n:], values[n:], 1, at + n, sliding)


@planted("keys-without-values", breaks="SNAP-17 SNAP-6")
class MergesKeysTwice(Over):
    """A merge takes the values from the keys."""

    def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None:
        made = super().merge(parent, child)
        if made is not None and parent is not None and child is not None:
            keys, values = made.rows
            width = min(keys.shape[3], values.shape[3])
            values[..., :width] = keys[..., :width]
        return made
