"""Bugs of masks, planted in the reference's caches and in its rounds."""

from __future__ import annotations

import numpy as np

from kvconform.mutants.planting import planted
from kvref import masks
from kvref.draft import Round
from kvref.growing import Growing
from kvref.ring import Ring
from kvspec.geometry import Array
from kvspec.masks import Causal, Explicit, Logical, Window


def array_of(mask: Array, sequences: int) -> Array:
    """An explicit array in which every sequence has the rows of this one."""
    return np.array(np.broadcast_to(mask, (sequences, *mask.shape[1:])))


@planted("MASK-03", breaks="MASK-17", anomaly="wrong-sequence")
class HiddenForOneForAll(Growing):
    """A position that is hidden in one sequence is hidden in every sequence."""

    def mask(self, logical: Logical) -> Array | None:
        found = super().mask(logical)
        if found is None or found.shape[0] == 1 or found.dtype != bool:
            return found
        return array_of(np.asarray(found.all(axis=0, keepdims=True)), found.shape[0])


@planted("PAD-05", breaks="MASK-17", anomaly="wrong-sequence")
class OneForTheBatch(Growing):
    """The mask of the first sequence is used for all."""

    def mask(self, logical: Logical) -> Array | None:
        found = super().mask(logical)
        return found if found is None else array_of(found[:1], found.shape[0])


@planted("PAD-04", breaks="MASK-2", anomaly="logical-order-mask")
class CountedInTheChunk(Growing):
    """Queries are counted from the beginning of their chunk, but keys from the beginning of the cache."""

    def mask(self, logical: Logical) -> Array | None:
        found = super().mask(logical)
        if found is None or logical != (Causal(),):
            return found
        return np.tril(np.ones(found.shape, np.bool_))


@planted("MASK-11", breaks="MASK-8")
class AllOldOnesHidden(Ring):
    """Once rows are evicted, all rows from before the chunk are hidden, not just those outside the window."""

    def mask(self, logical: Logical) -> Array | None:
        found, queries = super().mask(logical), self.queries or 0
        if found is None or queries < 2 or self.offset <= self.window or found.shape[3] == 1:
            return found
        old = np.arange(found.shape[3]) < found.shape[3] - queries
        return masks.intersected(found, ~old[None, None, None])


@planted("MASK-18", breaks="MASK-8", anomaly="window-off-by-one")
class WidthFromTheOffset(Ring):
    """A mask has as many columns as the chunk plus the window plus one, or plus the offset if that is less."""

    def mask(self, logical: Logical) -> Array | None:
        found, queries = super().mask(logical), self.queries or 0
        if found is None or queries < 2 or found.shape[3] == 1:
            return found
        width = queries + min(self.window + 1, self.offset - queries)
        more = np.zeros((*found.shape[:3], max(0, width - found.shape[3])), found.dtype)
        return np.concatenate([more, found], axis=3)


@planted("MASK-05", breaks="DRAFT-5 DRAFT-6", anomaly="desynchronised-layers")
class MadeOnce(Round):
    """The mask made for the first layer is used for every later layer."""

    def mask(self, layer: int, logical: Logical) -> Array | None:
        self.made = getattr(self, "made", {})
        found = super().mask(layer, logical)
        plain = not any(isinstance(p, Explicit) for p in logical)
        shape = (logical if plain else layer, None if found is None else found.shape)
        mask: Array | None = self.made.setdefault(shape, found)
        return mask


@planted("MASK-16", breaks="DRAFT-5", anomaly="desynchronised-layers")
class WindowOfTheFirst(Round):
    """Every layer uses the window of the first layer instead of its own."""

    def mask(self, layer: int, logical: Logical) -> Array | None:
        first = next((x.window for x in self.layers.values() if x.window), None)
        found = super().mask(layer, logical)
        if (
            found is None
            or first is None
            or not self.layers[layer].window
            or first >= (self.layers[layer].window or 0)
        ):
            return found
        rows, queries = found.shape[3], found.shape[2]
        narrow = masks.in_position_order((Window(first),), 1, queries, rows)
        return found if narrow is None or rows == 1 else masks.intersected(found, narrow)
