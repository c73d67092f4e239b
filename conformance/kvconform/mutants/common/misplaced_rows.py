"""Common bugs: rows that are not where they are looked for."""

from __future__ import annotations

import numpy as np

from kvconform.mutants.common.caches import Changing
from kvconform.mutants.planting import planted
from kvref.copy import Buffer
from kvref.draft import Layer, Round
from kvref.growing import Growing
from kvref.page import Pages
from kvref.ring import Ring
from kvref.rows import count
from kvref.snapshot import Snapshot
from kvref.store import Store
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


@planted("stale-cursor", breaks="RING-4 RING-1 RING-26")
class RingMovedByNothing(Ring):
    """An append of no rows to a full ring moves the write cursor."""

    def append(self, keys: Array, values: Array) -> None:
        super().append(keys, values)
        if self.queries == 0 and self.index == self.window:
            self.index = 0


@planted("stale-cursor", breaks="RING-12 RING-1 RING-26 MEM-1")
class RingFreesHalf(Ring):
    """Freeing sets the offset to 0, but leaves the slots and the write cursor."""

    def free(self) -> None:
        kept = self.rows, self.index
        super().free()
        self.rows, self.index = kept


@planted("half-restored", breaks="SNAP-12 SNAP-15")
class RingRestoresNoOffset(Ring):
    """A restore brings back the rows, and takes their number for the offset."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        super().restore(saved, to)
        if saved is not None:
            self.offset = min(self.offset, len(self.rows))


@planted("slot-order", breaks="RING-24")
class RingInSlotOrder(Ring):
    """An append of several rows to a wrapped ring leaves the old rows in slot order."""

    def _straighten(self) -> None:
        if self.offset <= self.window:
            super()._straighten()


@planted("slot-order", breaks="RING-5")
class RingViewInSlotOrder(Ring):
    """The view is in slot order."""

    def _newest(self) -> list[int]:
        return sorted(super()._newest())


@planted("wrong-position", breaks="SNAP-22")
class GrowingSplitsLater(Growing):
    """A split cuts one row too late."""

    def split(self, saved: Snapshot | None, at: int) -> tuple[Snapshot | None, Snapshot | None]:
        later = saved is not None and saved.start < at < saved.stop - 1
        return super().split(saved, at + later)


@planted("wrong-position", breaks="DRAFT-18")
class KeepsTheNewest(Layer):
    """A commit keeps the right number of drafts, but the last ones instead of the first."""

    def keep(self, n: int) -> None:
        self.before += self.drafts - n
        super().keep(n)


@planted("wrong-position", breaks="DRAFT-1")
class DraftsFromZero(Layer):
    """Positions of drafts are counted from the beginning of the round."""

    def draft(self, new: Pair) -> None:
        self.start = 0
        super().draft(new)


@planted("wrong-position", breaks="COPY-4 COPY-5")
class CopyOneFurther(Buffer):
    """A copy begins one slot too late."""

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        super()._write((slot + 1) % self.capacity, rows, i)


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


@planted("wrong-head", breaks="STORE-3 STORE-4")
class StoreHeadsReversed(Store):
    """Heads are stored in reverse order."""

    def _write(self, layer: int, at: int, rows: Pair) -> None:
        super()._write(layer, at, Pair(*(a[::-1] for a in rows)))


@planted("wrong-head", breaks="COPY-2 COPY-3")
class CopyHeadsReversed(Buffer):
    """Heads are stored in reverse order."""

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        super()._write(slot, Pair(*(a[:, ::-1] for a in rows)), i)


@planted("wrong-head", breaks="PAGE-6")
class PagesHeadsReversed(Pages):
    """Heads are stored in reverse order."""

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        super().append(keys[:, ::-1], values[:, ::-1], sequence)


@planted("wrong-sequence", breaks="GROW-23 RING-32 GROW-2 GROW-14 RING-1 RING-26")
class FirstSequenceForAll(Changing):
    """Every sequence of the batch gets the rows of the first."""

    def changed(self, rows: Array, kind: str) -> Array:
        return np.broadcast_to(rows[:1], rows.shape)


@planted("wrong-sequence", breaks="BATCH-13")
class BatchNextSequence(Store):
    """A step gives every sequence the row of its neighbour."""

    def step(self, keys: Array, values: Array) -> None:
        super().step(*(np.roll(a, 1, axis=1) if a.ndim == 4 else a for a in (keys, values)))


@planted("wrong-sequence", breaks="BATCH-12")
class BatchRollsBackAll(Store):
    """The rollback of one sequence rolls back all."""

    def rollback_sequence(self, sequence: int, to: int) -> None:
        super().rollback_sequence(sequence, to)
        for other in range(len(self.sequences() or ())):
            super().rollback_sequence(other, to)


@planted("desynchronised-layers", breaks="STORE-14")
class StoreRollsBackOne(Store):
    """A rollback reaches only the first layer."""

    def rollback(self, to: int) -> None:
        before = self.lengths_
        super().rollback(to)
        self.lengths_ = [*self.lengths_[:1], *before[1:]]


@planted("desynchronised-layers", breaks="STORE-12")
class StoreResetsAllButOne(Store):
    """A reset leaves out the last layer."""

    def reset(self) -> None:
        before = self.lengths_
        super().reset()
        self.lengths_[1:] = [*self.lengths_[1:-1], *before[1:][-1:]]


@planted("desynchronised-layers", breaks="STORE-3")
class StoreLayersReversed(Store):
    """Layers are stored in reverse order."""

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        super().append(keys[::-1], values[::-1], layer)


@planted("desynchronised-layers", breaks="DRAFT-18")
class LastLayerLeft(Round):
    """A commit leaves out the last layer."""

    def commit(self, n: int) -> None:
        last = max(self.layers)
        if len(self.layers) > 1:
            self.layers[last].keep = lambda _: None  # type: ignore
        super().commit(n)
