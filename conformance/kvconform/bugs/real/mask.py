"""Bugs of masks, planted in the reference's caches and in its rounds."""

from __future__ import annotations

import numpy as np

from kvconform.bugs.planting import planted
from kvref.abilities import masks
from kvref.abilities.draft import Round
from kvref.caches.growing import Growing
from kvspec.geometry import Array
from kvspec.masks import Explicit, Logical, Window


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


@planted("MASK-09", breaks="MASK-7")
class AddsInfinities(Growing):
    """Scores that add up to infinity and minus infinity come to NaN, which hides nothing."""

    def mask(self, logical: Logical) -> Array | None:
        found = super().mask(logical)
        scores = [p.array for p in logical if isinstance(p, Explicit) and p.array.dtype != bool]
        if found is None or not scores:
            return found
        with np.errstate(over="ignore", invalid="ignore"):
            spoilt = np.isnan(sum(scores, np.float32(0)))
        return np.where(spoilt, np.float32(np.nan), found)
