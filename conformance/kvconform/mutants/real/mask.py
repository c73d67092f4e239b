"""Bugs of masks, planted in the reference's caches and in its rounds."""

from __future__ import annotations

import numpy as np

from kvconform.mutants.planting import planted
from kvref import masks
from kvref.draft import Layer, Round
from kvref.growing import Growing
from kvref.ring import Ring
from kvspec.geometry import Array
from kvspec.masks import Causal, Explicit, Logical, Window


def array_of(mask: Array, sequences: int) -> Array:
    """An explicit array in which every sequence has the rows of this one."""
    return np.array(np.broadcast_to(mask, (sequences, *mask.shape[1:])))


@planted("MASK-02", breaks="MASK-8", seen="EricLBuehler/mistral.rs/commit/8ccdc41693fc445d4881f6d59b28c5939f3e6c5e")
class DroppedWhileItFits(Ring):
    """While the window is not full there is no mask at all, not even for several queries."""

    def mask(self, logical: Logical) -> Array | None:
        found = super().mask(logical)
        return None if not logical and self.offset <= self.window else found


@planted(
    "MASK-03",
    breaks="MASK-17",
    anomaly="wrong-sequence",
    seen="ollama/ollama/commit/a8e83a7654fffa169b90fa927e6d19c4c0c765d7",
)
class HiddenForOneForAll(Growing):
    """A position that is hidden in one sequence is hidden in every sequence."""

    def mask(self, logical: Logical) -> Array | None:
        found = super().mask(logical)
        if found is None or found.shape[0] == 1 or found.dtype != bool:
            return found
        return array_of(np.asarray(found.all(axis=0, keepdims=True)), found.shape[0])


@planted("PAD-05", breaks="MASK-17", anomaly="wrong-sequence", seen="meta-pytorch/torchtune/issues/1250")
class OneForTheBatch(Growing):
    """The mask of the first sequence is used for all."""

    def mask(self, logical: Logical) -> Array | None:
        found = super().mask(logical)
        return found if found is None else array_of(found[:1], found.shape[0])


@planted("PAD-04", breaks="MASK-2", anomaly="logical-order-mask", seen="mosaicml/examples/pull/257")
class CountedInTheChunk(Growing):
    """Queries are counted from the beginning of their chunk, but keys from the beginning of the cache."""

    def mask(self, logical: Logical) -> Array | None:
        found = super().mask(logical)
        if found is None or logical != (Causal(),):
            return found
        return np.tril(np.ones(found.shape, np.bool_))


@planted("MASK-11", breaks="MASK-8", seen="pytorch/executorch/commit/4db56439a1de9528119907db8ebbd2996b7a2a7d")
class AllOldOnesHidden(Ring):
    """Once rows are evicted, all rows from before the chunk are hidden, not just those outside the window."""

    def mask(self, logical: Logical) -> Array | None:
        found, queries = super().mask(logical), self.queries or 0
        if found is None or queries < 2 or self.offset <= self.window or found.shape[3] == 1:
            return found
        old = np.arange(found.shape[3]) < found.shape[3] - queries
        return masks.intersected(found, ~old[None, None, None])


@planted("MASK-18", breaks="MASK-8", anomaly="window-off-by-one", seen="ml-explore/mlx-swift-lm/pull/39")
class WidthFromTheOffset(Ring):
    """A mask has as many columns as the chunk plus the window plus one, or plus the offset if that is less."""

    def mask(self, logical: Logical) -> Array | None:
        found, queries = super().mask(logical), self.queries or 0
        if found is None or queries < 2 or found.shape[3] == 1:
            return found
        width = queries + min(self.window + 1, self.offset - queries)
        more = np.zeros((*found.shape[:3], max(0, width - found.shape[3])), found.dtype)
        return np.concatenate([more, found], axis=3)


@planted("WIN-05", breaks="MASK-8", seen="mistralai/mistral-inference/pull/137")
class OneColumnTooMany(Ring):
    """The window of a mask is one row wider than that of the cache."""

    def mask(self, logical: Logical) -> Array | None:
        if self.queries is None or self.queries < 2:
            return super().mask(logical)
        real, self.window = self.window, self.window + 1
        try:
            return super().mask(logical)
        finally:
            self.window = real


@planted(
    "MASK-05",
    breaks="DRAFT-5 DRAFT-6",
    anomaly="desynchronised-layers",
    seen="ml-explore/mlx-lm/commit/465b107c2a55bb36ffa28138e5a7d64ccc419c15",
)
class MadeOnce(Round):
    """The mask made for the first layer is used for every later layer."""

    def mask(self, layer: int, logical: Logical) -> Array | None:
        self.made = getattr(self, "made", {})
        found = super().mask(layer, logical)
        plain = not any(isinstance(p, Explicit) for p in logical)
        shape = (logical if plain else layer, None if found is None else found.shape)
        mask: Array | None = self.made.setdefault(shape, found)
        return mask


@planted("MASK-16", breaks="DRAFT-5", anomaly="desynchronised-layers", seen="ggml-org/llama.cpp/pull/15811")
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


@planted("MASK-20", breaks="DRAFT-5 DRAFT-6", seen="huggingface/transformers/pull/48280")
class RecordsMoreThanItSays(Layer):
    """While drafts are recorded, all rows are returned, but the mask has columns only for a window and the
    newest rows."""

    def mask(self, logical: Logical) -> Array | None:
        found = super().mask(logical)
        if found is None or not self.window or found.shape[3] == 1:
            return found
        return found[..., -(self.window - 1 + (self.queries or 0)) :]
