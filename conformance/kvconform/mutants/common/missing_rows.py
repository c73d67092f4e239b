"""Common bugs: rows that are missing."""

from __future__ import annotations

import numpy as np

from kvconform.mutants.common.caches import Changing, Over, RingKeeping, unwritten
from kvconform.mutants.planting import planted
from kvref.copy import Buffer
from kvref.draft import Layer
from kvref.growing import Growing
from kvref.ring import Ring
from kvref.rows import count
from kvref.snapshot import Snapshot
from kvref.store import Store
from kvspec.contract import Pair
from kvspec.geometry import Array, Config


@planted("lost-rows", breaks="GROW-5")
class GrowingRewindsTooFar(Growing):
    """A rewind drops one row too many."""

    def rewind(self, to: int) -> None:
        before = self.offset
        super().rewind(to)
        self.offset = max(0, to - (to < before))


@planted("lost-rows", breaks="GROW-1 RING-2")
class LastOfChunkMissing(Changing):
    """An append of several rows leaves out the last one."""

    def changed(self, rows: Array, kind: str) -> Array:
        return rows[:, :, : max(1, rows.shape[2] - 1)]


@planted("lost-rows", breaks="GROW-2 GROW-12")
class GrowingForgets(Growing):
    """Growth allocates new memory without copying the rows."""

    def _feed(self, new: Pair) -> None:
        before, slots = self.offset, len(self.rows)
        super()._feed(new)
        if len(self.rows) != slots:
            self.rows.write(0, Pair(*(a[:, :, :before] * 0 for a in (self.rows.keys, self.rows.values))))


@planted("lost-rows", breaks="GROW-2 GROW-12")
class GrowingForgetsOne(Growing):
    """Growth copies all rows but the newest."""

    def _feed(self, new: Pair) -> None:
        before, slots = self.offset, len(self.rows)
        super()._feed(new)
        if before and len(self.rows) != slots:
            self.rows.write(before - 1, unwritten(new))


@planted("lost-rows", breaks="SNAP-1")
class GrowingSavesOneLess(Growing):
    """A snapshot lacks the newest row."""

    def snapshot(self, start: int) -> Snapshot | None:
        self.offset -= self.offset > 0
        try:
            return super().snapshot(start)
        finally:
            self.offset += self.written


@planted("lost-rows", breaks="RING-3 RING-25")
class RingKeepsNone(RingKeeping):
    """An append of several rows drops all earlier rows."""

    def kept(self) -> int:
        return 0


@planted("lost-rows", breaks="RING-3 RING-18 RING-25")
class RingEvictsFirst(Ring):
    """A long append keeps only a window of rows, before its first queries have seen the others."""

    def _prefill(self, new: Pair) -> None:
        super()._prefill(new)
        self.rows.keep(max(0, len(self.rows) - self.window), len(self.rows))
        self.index = len(self.rows)


@planted("lost-rows", breaks="RING-20")
class RingKeepsTheOldest(Ring):
    """When a long append is cut down to the window, its oldest rows are kept."""

    def _decode(self, new: Pair) -> None:
        if len(self.rows) > self.window:
            self.rows.keep(0, self.window)
            self.index = self.window
        super()._decode(new)


@planted("lost-rows", breaks="STORE-25")
class StoreInitResets(Store):
    """Initialising a store again with the same geometry makes it empty."""

    def init(self, config: Config) -> None:
        super().init(config)
        self.lengths_ = [0] * len(self.lengths_)


@planted("lost-rows", breaks="DRAFT-18")
class KeepsNone(Layer):
    """A commit keeps no draft."""

    def keep(self, n: int) -> None:
        super().keep(0)


@planted("lost-rows", breaks="DRAFT-2 DRAFT-3 DRAFT-4")
class DraftsAlone(Layer):
    """A draft does not see the drafts of earlier calls."""

    def draft(self, new: Pair) -> None:
        if self.drafts and new.keys.ndim == 4 and new.keys.shape[2]:
            self.start += self.drafts
            self.rows.keep(0, self.before)
        super().draft(new)


@planted("hole", breaks="GROW-1 GROW-14")
class GrowingSkips(Growing):
    """The first single row after a chunk is written one slot too far."""

    chunk = False

    def _feed(self, new: Pair) -> None:
        if self.chunk and count(new) == 1:
            super()._feed(unwritten(new))
        self.chunk = count(new) > 1
        super()._feed(new)


@planted("hole", breaks="GROW-1 GROW-14")
class GrowingSkipsAlways(Growing):
    """Every append of one row to a cache that is not empty skips a slot."""

    def _feed(self, new: Pair) -> None:
        if self.offset and count(new) == 1:
            super()._feed(unwritten(new))
        super()._feed(new)


@planted("overwritten-rows", breaks="RING-1 RING-19")
class RingOverwritesTheNewest(Ring):
    """Once the ring is full, a single row replaces the newest row instead of the oldest."""

    def _decode(self, new: Pair) -> None:
        if self.index == self.window == len(self.rows):
            self.index -= 1
        super()._decode(new)


@planted("overwritten-rows", breaks="RING-1 RING-19")
class RingWrapsToOne(Ring):
    """The ring wraps to its second slot instead of its first."""

    def _decode(self, new: Pair) -> None:
        if self.index == self.window == len(self.rows) > 1:
            self.index = 1
        super()._decode(new)


@planted("overwritten-rows", breaks="BATCH-13")
class BatchForgetsToCount(Store):
    """A step writes its rows but does not increase the lengths."""

    def step(self, keys: Array, values: Array) -> None:
        super().step(keys, values)
        self._batch("step").lengths = [n - 1 for n in self._batch("step").lengths]


@planted("overwritten-rows", breaks="COPY-7 COPY-9")
class CopyOneMore(Buffer):
    """A copy takes one row more than asked for, if its source has one."""

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        super().copy(keys, values, n, at, sliding)
        if 0 < n < len(keys) and at + n < self.capacity:
            super().copy(keys[n:], values[n:], 1, at + n, sliding)


@planted("keys-without-values", breaks="GROW-1 RING-2 GROW-2 GROW-14 RING-1 RING-26")
class ValuesMissing(Changing):
    """An append writes the keys, and zeros for the values."""

    def changed(self, rows: Array, kind: str) -> Array:
        return rows if kind == "k" else np.zeros_like(rows)


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


@planted("keys-without-values", breaks="COPY-4 COPY-5")
class CopyKeysOnly(Buffer):
    """A copy writes the keys but not the values."""

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        values = self.values.copy()
        super()._write(slot, rows, i)
        self.values[...] = values
