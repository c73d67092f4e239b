"""Rows of an encoder in one device block: those of all layers that see them, written once."""

from __future__ import annotations

from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.cache_rows import downloaded, fitting
from kvgpu.memory.layout import Geometry, put, replace
from kvgpu.memory.row_forms import Codec
from kvspec.contract import Pair
from kvspec.geometry import Array, Config


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
        source = self.codecs.staged(keys, values)
        made = Rows(self.space.runtime, self.geometry, source.slots)
        put(self.space.runtime, self.geometry, source.slots, source, made.place, 0)
        self.adopt(Shared(made))

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
