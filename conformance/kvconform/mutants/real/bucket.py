"""Bugs of padding, bounds, blocks and cross-attention, planted in the reference's bucketed cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvconform.mutants.planting import planted
from kvref.bucket import Bucket
from kvref.compiled_graph import Graph, Handles, over
from kvspec.contract import Pair
from kvspec.geometry import Array


@planted("PAD-09", breaks="BUCKET-5")
class ZerosSeen(Graph):
    """Attention covers every slot of the handles."""

    def run(self, handles: Handles, queries: Array, new: Pair, past: int, splits: int) -> Array:
        return super().run(handles, queries, new, self.bound, splits)


@planted("POS-05", breaks="BUCKET-14")
class CountedWhenAsked(Bucket):
    """The rows of a block are counted before they are committed."""

    def block(self, queries: Array, keys: Array, values: Array, splits: int, past: Any, out: Any = None) -> Array:
        found = super().block(queries, keys, values, splits, past, out)
        self.past_ += keys.shape[3]
        return found


@planted("GROW-08", breaks="BUCKET-21", anomaly="padding-seen")
class BoundAsLength(Bucket):
    """A layer is read up to its bound instead of its length."""

    def read(self, layer: int) -> Pair:
        found = super().read(layer)
        if self.handles is None or self.stale or self.past_ > self.handles.bound:
            return found
        whole = self.handles.fetched(list(range(self.handles.bound)))
        return Pair(*(a[layer] for a in whole))


@planted("XATTN-02", breaks="BUCKET-22")
class EncodingAsOwnRows(Bucket):
    """The encoder's rows are treated as the decoder's own, and hidden from earlier queries."""

    def cross(self, queries: Array, splits: int = 1, out: Array | None = None) -> Array:
        found = super().cross(queries, splits, out)
        if self.encoded is None or queries.shape[3] == 0:
            return found
        hidden = over(queries, *self.encoded, splits, causal=True)
        return hidden if out is None else found


@planted("XATTN-01", breaks="BUCKET-23", anomaly="doubled-rows")
class GrowingEncoding(Bucket):
    """The last row of the encoder is appended again at every step."""

    steps = 0

    def decode(
        self, queries: Array, keys: Array, values: Array, splits: int, refresh: bool, past: Any, out: Any = None
    ) -> Array:
        found = super().decode(queries, keys, values, splits, refresh, past, out)
        self.steps += self.encoded is not None
        return found

    def cross(self, queries: Array, splits: int = 1, out: Array | None = None) -> Array:
        whole = self.encoded
        if whole is not None:
            self.encoded = Pair(*(np.concatenate([a, *[a[..., -1:, :]] * self.steps], axis=3) for a in whole))
        try:
            return super().cross(queries, splits, out)
        finally:
            self.encoded = whole
