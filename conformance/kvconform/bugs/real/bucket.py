"""Bugs of padding, bounds, blocks and cross-attention, planted in the reference's bucketed cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvconform.bugs.planting import planted
from kvref.caches.bucket import Bucket
from kvref.memory.compiled_graph import over
from kvspec.contract import Pair
from kvspec.geometry import Array


@planted("XATTN-02", breaks="BUCKET-22")
class EncodingAsOwnRows(Bucket):
    """The encoder's rows are treated as the decoder's own, and hidden from earlier queries."""

    def cross(self, queries: Array, splits: int = 1, out: Array | None = None) -> Array:
        found = super().cross(queries, splits, out)
        if self.encoded is None or queries.shape[3] == 0:
            return found
        hidden = over(queries, *self.kept.decoded(self.encoded), splits, causal=True)
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
