"""What engines do otherwise with a cache of one layer and with one of several alike: a class of each."""

from __future__ import annotations

from typing import Any

from kvref.list_model.caches import CacheModel
from kvref.list_model.layers import LayersModel
from kvref.list_model.ring import RingModel
from kvref.list_model.rows import Rows, fit
from kvref.list_model.unsaid import Unsaid, may
from kvref.list_model.views import Chunk, Conv, Sinks, State, View, Window


def views(cache: Any) -> list[View]:
    """The view of each layer."""
    return cache.views if isinstance(cache, LayersModel) else [cache.own_view]


def full(cache: Any) -> bool:
    """Whether a ring is full: the next token sees fewer rows than there are."""
    rings = (v for v in views(cache) if isinstance(v, Window | Sinks) and not isinstance(v, Conv))
    return any(len(view.needs(cache.offset)) < cache.offset for view in rings)


class _Lends:
    """An update keeps the arrays that it takes, or returns those that it keeps: what one does to them is done to
    the cache, and the cache writes on them."""

    lent = False
    lends_from = 1
    """The rows of an update from which on it does so."""

    def append(self, keys: Rows, values: Rows) -> None:
        super().append(keys, values)
        self.lent = self.lent or keys.n >= self.lends_from

    def overwritten(self) -> None:
        """Nothing is said of a cache whose arrays are overwritten."""
        if self.lent:
            raise Unsaid


class LendsItsArrays(_Lends, CacheModel):
    """Of one layer."""


class LendsItsBuffers(_Lends, CacheModel):
    """torchtune: an update of no rows returns the whole buffers too."""

    lends_from = 0


class RingLendsItsArrays(_Lends, RingModel):
    """Of rings alone."""


class LayersLendTheirArrays(_Lends, LayersModel):
    """Of several layers."""


class _NoRowsFix:
    """An update with no rows fixes heads, widths and dtype as others do, or raises where they are fixed."""

    begun = False

    def append(self, keys: Rows, values: Rows) -> None:
        config, first = self.config, self.begun and not self.shaped
        if (first or not keys.n) and not fit(keys, values, config, self.across(), config.kv_heads, keys.n):
            raise Unsaid("ok refused")
        super().append(keys, values)
        self.begun = True


class NoRowsFixGeometry(_NoRowsFix, CacheModel):
    """Of one layer."""

    def across(self) -> int:
        """What the first axis of rows counts: sequences."""
        return self.config.batch


class LayersFixGeometry(_NoRowsFix, LayersModel):
    """Of several layers."""

    def across(self) -> int:
        """What the first axis of rows counts: layers."""
        return len(self.own)


class _LeavesRoom:
    """mlx-lm: a full ring takes an update with no rows for a chunk, and drops a row for it; the next single row is
    written over another one, or raises."""

    short = False

    def append(self, keys: Rows, values: Rows) -> None:
        if self.short and keys.n == 1:
            raise Unsaid("ok refused")
        super().append(keys, values)
        self.short = not keys.n and (self.short or full(self))


class NoRowsLeaveRoom(_LeavesRoom, CacheModel):
    """Of one layer."""


class LayersLeaveRoom(_LeavesRoom, LayersModel):
    """Of several layers."""


class _Raises:
    """transformers: a full static layer joins all rows but its oldest to none, and has too few for its buffer. One
    row fits a buffer of two."""

    def append(self, keys: Rows, values: Rows) -> None:
        sizes = [] if keys.n else [view.size for view in views(self) if self._holds(view)]
        if sizes:
            raise Unsaid("ok error") if 2 in sizes else Unsaid("error", kept=True)
        super().append(keys, values)

    def _holds(self, view: View) -> bool:
        rolls = isinstance(view, Window | Chunk) and not isinstance(view, Conv)
        return rolls and 0 < view.size <= self.offset


class NoRowsRaise(_Raises, RingModel):
    """Of a ring."""


class LayersRaise(_Raises, LayersModel):
    """Of several layers."""


class _TrimsNegative:
    """Trimming a negative number lengthens a cache that can be trimmed, or raises once it has. A very long one has
    no room then."""

    def can_rewind(self, to: int) -> bool | None:
        return True if self._lengthened(to) else super().can_rewind(to)

    def rewind(self, to: int) -> None:
        if self._lengthened(to):
            self.owed = "any oom"
            with may("ok refused", "CACHE-7"):
                super().rewind(to)
        else:
            super().rewind(to)

    def _lengthened(self, to: int) -> bool:
        arrays = any(isinstance(view, State | Conv) for view in views(self))
        return to > self.offset and not arrays and not full(self)


class TrimsNegative(_TrimsNegative, CacheModel):
    """Of one layer."""


class LayersTrimNegative(_TrimsNegative, LayersModel):
    """Of several layers."""
