"""Common bugs of stores, batches, buffers, pages and speculation, planted though nobody reported them here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvref.bucket import Bucket
from kvref.casts import narrowed
from kvref.copy import Buffer
from kvref.draft import Layer, Round
from kvref.page import Pages
from kvref.store import Store
from kvspec.contract import Pair
from kvspec.geometry import Array, Config


class StoreRollsBackOne(Store):
    """A rollback reaches the first layer alone."""

    def rollback(self, to: int) -> None:
        before = self.lengths_
        super().rollback(to)
        self.lengths_ = [*self.lengths_[:1], *before[1:]]


class StoreResetsAllButOne(Store):
    """A reset leaves the last layer as it was."""

    def reset(self) -> None:
        before = self.lengths_
        super().reset()
        self.lengths_[1:] = [*self.lengths_[1:-1], *before[1:][-1:]]


class StoreResetsNothing(Store):
    """A reset succeeds and changes nothing."""

    def reset(self) -> None:
        pass


class StoreHalfDone(Store):
    """An append to all layers is done layer by layer: the layers before a full one get their rows."""

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        if layer is None and keys.ndim == values.ndim == 4 and len(keys) == len(values) == len(self.lengths_):
            for each in range(len(self.lengths_)):
                super().append(keys[each : each + 1], values[each : each + 1], each)
        else:
            super().append(keys, values, layer)


class StoreLayersReversed(Store):
    """The rows of layers are written in the opposite order of layers."""

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        super().append(keys[::-1], values[::-1], layer)


class StoreHeadsReversed(Store):
    """The rows of the heads are stored in the opposite order of heads."""

    def _write(self, layer: int, at: int, rows: Pair) -> None:
        super()._write(layer, at, Pair(*(a[::-1] for a in rows)))


class StoreLoadsNothing(Store):
    """A load succeeds and changes nothing."""

    def load(self, saved: Sequence[Pair]) -> None:
        self._loadable(saved)


class StoreKeepsItsTail(Store):
    """After a load the rows beyond the loaded ones are those that were there."""

    def load(self, saved: Sequence[Pair]) -> None:
        old = [a.copy() for a in (*self.keys, *self.values)]
        super().load(saved)
        for now, before, n in zip((*self.keys, *self.values), old, self.lengths_ * 2, strict=True):
            now[:, n:] = before[:, n:]


class StoreInitResets(Store):
    """Initialising with the geometry that is there makes the store empty."""

    def init(self, config: Config) -> None:
        super().init(config)
        self.lengths_ = [0] * len(self.lengths_)


class BatchNextSequence(Store):
    """A step gives every sequence the row of its neighbour."""

    def step(self, keys: Array, values: Array) -> None:
        super().step(*(np.roll(a, 1, axis=1) if a.ndim == 4 else a for a in (keys, values)))


class BatchRollsBackAll(Store):
    """The rollback of one sequence reaches all."""

    def rollback_sequence(self, sequence: int, to: int) -> None:
        super().rollback_sequence(sequence, to)
        for other in range(len(self.sequences() or ())):
            super().rollback_sequence(other, to)


class BatchResetsNothing(Store):
    """A reset of the batch succeeds and changes nothing."""

    def reset_batch(self) -> None:
        before = self._batch("reset").lengths
        super().reset_batch()
        self._batch("reset").lengths = before


class BatchForgetsToCount(Store):
    """A step writes its rows, and no length moves on."""

    def step(self, keys: Array, values: Array) -> None:
        super().step(keys, values)
        self._batch("step").lengths = [n - 1 for n in self._batch("step").lengths]


class CopyKeysOnly(Buffer):
    """A copy writes the keys and leaves the values."""

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        values = self.values.copy()
        super()._write(slot, rows, i)
        self.values[...] = values


class CopyOneFurther(Buffer):
    """A copy begins one slot too far."""

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        super()._write((slot + 1) % self.capacity, rows, i)


class CopyOneMore(Buffer):
    """A copy takes one row more than it was asked for, where its source has one."""

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        super().copy(keys, values, n, at, sliding)
        if 0 < n < len(keys) and at + n < self.capacity:
            super().copy(keys[n:], values[n:], 1, at + n, sliding)


class CopyCutsOff(Buffer):
    """A cast cuts digits off instead of rounding."""

    def _cast(self, array: Array) -> Array:
        if array.dtype != np.float32 or self.config.dtype != "bf16":
            return super()._cast(array)
        cut = (array.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        return narrowed(np.where(np.isnan(array), array, cut), self.config.dtype)


class CopyHeadsReversed(Buffer):
    """The rows of the heads are stored in the opposite order of heads."""

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        super()._write(slot, Pair(*(a[:, ::-1] for a in rows)), i)


class PagesTruncateNothing(Pages):
    """A truncate succeeds and changes nothing."""

    def _cut(self, cut: Any, to: int) -> None:
        if to == 0:
            super()._cut(cut, to)


class PagesKeepTheEnd(Pages):
    """A truncate shortens the sequence, and its pages are never given back."""

    def truncate(self, sequence: int, to: int) -> None:
        before = list(self._of(sequence).table)
        self.pool.share(before)
        super().truncate(sequence, to)
        self.pool.give(self._of(sequence).table)


class PagesHeadsReversed(Pages):
    """The rows of the heads are stored in the opposite order of heads."""

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        super().append(keys[:, ::-1], values[:, ::-1], sequence)


class BucketCutsNothing(Bucket):
    """A cut succeeds and changes nothing."""

    def cut(self, to: int) -> None:
        before = self.past_, self.pending, self.rows
        super().cut(to)
        self.past_, self.pending, self.rows = before


class BucketCutsOneShort(Bucket):
    """A cut leaves one row too many."""

    def cut(self, to: int) -> None:
        super().cut(min(self.past_, to + 1) if to >= 0 else to)


class KeepsAll(Layer):
    """A commit keeps every draft."""

    def keep(self, n: int) -> None:
        super().keep(self.drafts)


class KeepsNone(Layer):
    """A commit keeps no draft."""

    def keep(self, n: int) -> None:
        super().keep(0)


class KeepsOneMore(Layer):
    """A commit keeps one draft too many, where there is one."""

    def keep(self, n: int) -> None:
        super().keep(min(n + 1, self.drafts))


class KeepsTheNewest(Layer):
    """A commit keeps as many drafts as it should, those at the end."""

    def keep(self, n: int) -> None:
        self.before += self.drafts - n
        super().keep(n)


class DraftsAlone(Layer):
    """A draft sees no other draft of a call before."""

    def draft(self, new: Pair) -> None:
        if self.drafts and new.keys.ndim == 4 and new.keys.shape[2]:
            self.start += self.drafts
            self.rows.keep(0, self.before)
        super().draft(new)


class DraftsFromZero(Layer):
    """Positions of drafts are counted from the beginning of the round."""

    def draft(self, new: Pair) -> None:
        self.start = 0
        super().draft(new)


class LastLayerLeft(Round):
    """A commit passes over the last layer."""

    def commit(self, n: int) -> None:
        last = max(self.layers)
        if len(self.layers) > 1:
            self.layers[last].keep = lambda _: None  # type: ignore
        super().commit(n)
