"""A store with heads outermost."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kvadapters.reference import Reference
from kvref.caches.store import Store
from kvref.memory import meter
from kvspec.geometry import Array
from kvworkshop.correct_variants.variant import Variant


class HeadMajorStore(Store):
    """A store with heads outermost: all layers of a head lie together in one array for keys and one for values."""

    def _zeros(self, layers: int, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> list[Array]:
        """All in one array `[kv_heads, layers, max_len, dim]`."""
        heads, rows, dim = shape
        whole = meter.zeros((heads, layers, rows, dim), dtype)
        return [whole[:, layer] for layer in range(layers)]


class HeadMajor(Variant):
    """A store that keeps all rows of a head together, layer after layer; batches work over it as over any
    store."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "store": HeadMajorStore}
