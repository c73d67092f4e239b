"""Rows of an encoder in one device block: those of all layers that see them, written once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.cache_rows import downloaded, fitting
from kvgpu.memory.layout import Geometry, Place, put, replace
from kvgpu.memory.row_forms import Codec
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config


class Shared:
    """Rows that a cache and snapshots of it have in common, since nobody changes them."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.owners = rows, 1

    @property
    def nbytes(self) -> int:
        """Count the bytes of the rows."""
        return self.rows.nbytes

    def share(self) -> Shared:
        """Give them to one owner more."""
        self.owners += 1
        return self

    def release(self) -> None:
        """Take them from an owner; the last one gives the memory back."""
        self.owners -= 1
        if not self.owners:
            self.rows.release()


class EncoderRows:
    """Rows `[layers, kv_heads, n, dim]`, one layer behind the other; none before they are handed in."""

    def __init__(self, space: Workspace, config: Config, layers: int) -> None:
        self.space, self.layers = space, layers
        self.one, self.together = config, config.changed(batch=max(1, layers))
        self.codec, self.codecs = Codec(space, self.one), Codec(space, self.together)
        self.geometry = Geometry.of(self.together)
        self.shared: Shared | None = None

    @property
    def nbytes(self) -> int:
        """Count the bytes of the rows."""
        return 0 if self.shared is None else self.shared.nbytes

    @property
    def count(self) -> int:
        """Count the rows of a layer."""
        return 0 if self.shared is None else self.shared.rows.slots

    def fit(self, keys: Array, values: Array) -> bool:
        """Tell whether rows are of so many layers, at least one, and of the cache's geometry."""
        return self.layers > 0 and fitting(self.together, keys, values)

    def take(self, keys: Array, values: Array) -> None:
        """Write rows, at least one, into memory of their own. Raises MemoryError."""
        self.adopt(self._written(self.codecs.staged(keys, values)))

    def _written(self, source: Place) -> Shared:
        made = Rows(self.space.runtime, self.geometry, source.slots)
        put(self.space.runtime, self.geometry, source.slots, source, made.place, 0)
        return Shared(made)

    def received(self, each: Sequence[Pair]) -> Shared | None:
        """Upload the bytes of rows of each layer, `[1, kv_heads, n, row bytes]`; None where there are none. Raises
        MemoryError."""
        if not each or not each[0].keys.shape[2]:
            return None
        return self._written(self.space.staged(self.geometry, *map(np.concatenate, zip(*each, strict=True))))

    def packed(self) -> list[Pair]:
        """Download the rows of each layer as they are kept: `[1, kv_heads, n, width]`, bytes of a form."""
        both = self._kept("k", self.geometry.k_bytes), self._kept("v", self.geometry.v_bytes)
        return [Pair(*(a[layer : layer + 1] for a in both)) for layer in range(self.layers)]

    def _kept(self, part: str, size: int) -> Array:
        dtype = DTYPES[self.one.dtype] if self.one.form is None else np.dtype(np.uint8)
        shape = self.layers, self.one.kv_heads, self.count, size // dtype.itemsize
        if self.shared is None:
            return np.empty(shape, dtype)
        place = self.shared.rows.place
        block, at = (place.keys, place.keys_at) if part == "k" else (place.values, place.values_at)
        lines = self.layers * self.one.kv_heads * self.count
        return self.space.runtime.download(block, at, lines * size).view(dtype).reshape(shape)

    def adopt(self, shared: Shared | None) -> None:
        """Have these rows in the place of others, or none."""
        if self.shared is not None:
            self.shared.release()
        self.shared = shared

    def read(self, layer: int) -> Pair:
        """Download the rows of a layer that sees them, by its number among these: `[1, kv_heads, n, dim]`."""
        assert self.shared is not None
        rows, one = self.shared.rows, Geometry.of(self.one)
        if self.space.checks:
            rows.check_guards()
        lines = layer * one.heads * rows.slots
        at = rows.place.keys_at + lines * one.k_bytes, rows.place.values_at + lines * one.v_bytes
        return downloaded(self.codec, rows.slots, replace(rows.place, *at).span())
