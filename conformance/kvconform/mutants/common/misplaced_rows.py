"""Common bugs: rows that are not where they are looked for."""

from __future__ import annotations

import numpy as np

from kvconform.mutants.common.caches import Changing
from kvconform.mutants.planting import planted
from kvref.growing import Growing
from kvref.ring import Ring
from kvref.rows import count
from kvref.snapshot import Snapshot
from kvspec.contract import Pair
from kvspec.geometry import Array


@planted("stale-cursor", breaks="GROW-6 GROW-2 GROW-14")
class GrowingStaleCursor(Growing):
    """A rewind moves the offset, and the next rows are written behind the old tail."""

    def _clear(self) -> None:
        super()._clear()
        self.cursor = 0

    def _feed(self, new: Pair) -> None:
        offset, self.offset = self.offset, max(self.offset, self.cursor)
        super()._feed(new)
        self.cursor, self.offset = self.offset, offset + count(new)


@planted("stale-cursor", breaks="RING-7 RING-8 RING-27 RING-1 RING-26")
class RingStaleCursor(Ring):
    """A rewind moves the offset but not the write cursor."""

    def rewind(self, to: int) -> None:
        index = self.index
        super().rewind(to)
        self.index = index


@planted("half-restored", breaks="SNAP-12 SNAP-15")
class RingRestoresNoOffset(Ring):
    """A restore brings back the rows, and takes their number for the offset."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        super().restore(saved, to)
        if saved is not None:
            self.offset = min(self.offset, len(self.rows))


@planted("wrong-head", breaks="GROW-1 RING-2 GROW-2 GROW-14 RING-1 RING-26")
class HeadsReversed(Changing):
    """Heads are stored in reverse order."""

    def changed(self, rows: Array, kind: str) -> Array:
        return rows[:, ::-1]


@planted("wrong-head", breaks="GROW-1 RING-2 GROW-2 GROW-14 RING-1 RING-26")
class FirstHeadForAll(Changing):
    """Every head gets the rows of the first."""

    def changed(self, rows: Array, kind: str) -> Array:
        return np.broadcast_to(rows[:, :1], rows.shape)


@planted("wrong-sequence", breaks="GROW-23 RING-32 GROW-2 GROW-14 RING-1 RING-26")
class FirstSequenceForAll(Changing):
    """Every sequence of the batch gets the rows of the first."""

    def changed(self, rows: Array, kind: str) -> Array:
        return np.broadcast_to(rows[:1], rows.shape)
