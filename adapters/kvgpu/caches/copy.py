"""The buffer that copies go into, on a device: one launch casts the staged rows and puts them in their slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kvgpu.caches import mem
from kvgpu.memory import device_arrays as resident
from kvgpu.memory import row_forms
from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.cache_rows import acceptable
from kvgpu.memory.layout import Geometry, Place
from kvgpu.memory.row_forms import Codec
from kvgpu.runtime import Block, Work
from kvspec.contract import Pair, Readable
from kvspec.geometry import DTYPES, WORDS, Array, Config
from kvspec.refusals import common as refusals

QUAD = 4
"""Elements that are cast together: 16 bytes of a source."""


@dataclass(frozen=True)
class Alias:
    """Slots of a buffer as a source: their place, and the shape and dtype of an array of them."""

    block: Block
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Buffer:
    """`capacity` slots for each head. In the layout `token` heads lie side by side, and are one head to the
    kernels."""

    kind = "copy"

    def __init__(self, config: Config, space: Workspace) -> None:
        known = config.layout in WORDS["layout"]
        if not (acceptable(config) and config.capacity and config.batch <= 1 and known):
            raise refusals.config("CACHE-3", self.kind, config)
        row_forms.demand(config)
        self.config, self.space, self.capacity = config, space, config.capacity
        one = Geometry.of(config)
        joined = Geometry(1, one.heads * one.k_bytes, one.heads * one.v_bytes)
        self.rows = Rows(space.runtime, joined if config.layout == "token" else one, self.capacity)
        self.rows.clear()

    def copy(self, keys: Any, values: Any, n: int, at: int, sliding: bool) -> None:
        """Copy the first n rows of `[rows, kv_heads, dim]` into the slots from `at` on, in one launch."""
        if n == 0 or all(0 in a.shape[1:] for a in (keys, values)):
            return
        dtype = self._demand_rows(keys, values, n)
        self._demand_slots(n, at, sliding)
        skipped = max(0, n - self.capacity)
        source = self._source(dtype, keys[skipped:n], values[skipped:n])
        if self.config.form is not None:
            source, dtype = self._encoded(source, dtype), self.config.dtype
        self._place(source, dtype, self.rows.geometry, self.rows.place, (at + skipped) % self.capacity)

    def _encoded(self, source: Place, dtype: str) -> Place:
        """Give the bytes of rows, token after token: they are cast first, and encoded then. To the codec each head
        of a token is a head of its own, of one row."""
        tokens = source.slots
        codec = Codec(self.space, self.config.changed(batch=tokens))
        if dtype != self.config.dtype:
            plain = Geometry.of(self.config.changed(form=None))
            joined = Geometry(1, plain.heads * plain.k_bytes, plain.heads * plain.v_bytes)
            cast = Place.packed(self.space.scratch("cast", joined.packed(tokens)[1]), joined, tokens)
            self._place(source, dtype, joined, cast, 0)
            source = cast
        return codec.encoded(source._replace(slots=1))._replace(slots=tokens)

    def _demand_rows(self, keys: Any, values: Any, n: int) -> str:
        """The dtype of the rows. Refuses rows that do not fit this buffer, and fewer than n."""
        dims = self.config.k_dim, self.config.v_dim
        shapes = [(*keys.shape[:1], self.config.kv_heads, dim) for dim in dims]
        if [keys.shape, values.shape] != shapes:
            raise refusals.copy_geometry("COPY-17", self.config, keys, values)
        dtype = next((d for d in (self.config.dtype, "f32") if DTYPES[d] == keys.dtype == values.dtype), None)
        if dtype is None:
            raise refusals.copy_cast("COPY-18", self.config, keys, values)
        if any(isinstance(a, Alias) and a.block is self.rows.block and a.shape[0] for a in (keys, values)):
            raise refusals.copy_overlap("COPY-19", n)
        if n > keys.shape[0]:
            raise refusals.copy_short("COPY-20", self.config, keys.shape[0], n)
        return dtype

    def _demand_slots(self, n: int, at: int, sliding: bool) -> None:
        """Refuse positions that have no slot."""
        if at < 0:
            raise refusals.copy_before("COPY-21", at)
        if at + n > self.capacity and not sliding:
            raise refusals.copy_beyond("COPY-22", at, n, self.capacity)

    def _source(self, dtype: str, keys: Any, values: Any) -> Place:
        """Give rows where they lie on the device, or upload them as they are, token after token."""
        there = resident.source(self.space.runtime, len(keys), keys, values)
        if there is not None:
            return there
        lines = [a.reshape(len(a), -1) for a in (keys, values)]
        sizes = [a.shape[1] * DTYPES[dtype].itemsize for a in lines]
        return self.space.staged(Geometry(1, *sizes), *lines)

    def _place(self, source: Place, dtype: str, geometry: Geometry, to: Place, slot: int) -> None:
        """Write rows to the slots of a place from this one on; the first slot follows the last."""
        kernel, read, written = self._kernel(dtype, geometry)
        widths = geometry.k_bytes // written, geometry.v_bytes // written
        work = Work(max(widths), source.slots, geometry.heads, 2)
        blocks = source.keys, source.values, to.keys, to.values
        sizes = work.parts, work.heads, work.rows, *widths
        begin = source.keys_at // read, source.values_at // read, to.keys_at // written, to.values_at // written
        self.space.runtime.launch(kernel, work, *blocks, *sizes, *begin, to.slots, slot)
        self.space.runtime.meter.device_to_device += source.slots * geometry.row_bytes

    def _kernel(self, dtype: str, geometry: Geometry) -> tuple[str, int, int]:
        """Give the kernel for rows of this dtype, and the bytes of the words that it reads and that it writes."""
        if dtype == self.config.dtype:
            return f"copy{geometry.word}", geometry.word, geometry.word
        size = DTYPES[self.config.dtype].itemsize
        together = 1 if geometry.k_bytes % (QUAD * size) or geometry.v_bytes % (QUAD * size) else QUAD
        return f"cast{together}_{self.config.dtype}", together * DTYPES[dtype].itemsize, together * size

    def alias(self, source: int, n: int) -> tuple[Alias, Alias]:
        """The buffer's own n slots from `source` on, as far as they exist."""
        rows, dtype = max(0, min(n, self.capacity - source)), DTYPES[self.config.dtype]
        keys, values = (
            Alias(self.rows.block, (rows, self.config.kv_heads, dim), dtype)
            for dim in (self.config.k_dim, self.config.v_dim)
        )
        return keys, values

    def plan(self, n: int) -> mem.Plan:
        """The bytes held, which no copy changes."""
        return self.held(), self.held()

    def held(self) -> int:
        """Bytes of all slots."""
        return self.rows.nbytes

    def read(self, what: Readable) -> Pair:
        """Download both, whole and in their layout."""
        if self.space.checks:
            self.rows.check_guards()
        place = self._shown()
        return Pair(
            self._whole(place.keys, place.keys_at, self.config.k_dim),
            self._whole(place.values, place.values_at, self.config.v_dim),
        )

    def _shown(self) -> Place:
        """Give all slots as they are read; those in a form are decoded to another place."""
        place, config = self.rows.place, self.config
        if config.form is None:
            return place
        if config.layout == "head":
            return Codec(self.space, config).decoded(place, self.capacity)
        return Codec(self.space, config.changed(batch=self.capacity)).decoded(place._replace(slots=1), 1)

    def _whole(self, block: Block, at: int, dim: int) -> Array:
        dtype, heads = DTYPES[self.config.dtype], self.config.kv_heads
        shape = (self.capacity, heads, dim) if self.config.layout == "token" else (heads, self.capacity, dim)
        found = self.space.runtime.download(block, at, self.capacity * heads * dim * dtype.itemsize)
        return found.view(dtype).reshape(shape)
