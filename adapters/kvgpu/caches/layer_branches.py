"""Drafts of layers on a device: the rows of each call in a block of their own, until one way is kept.

A draft never lies among the rows of the layers. So what is dropped is given back, and what is kept is gathered once
and goes where an append would have put it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kvgpu.caches.branches import Branches
from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.cache_rows import downloaded
from kvgpu.memory.layout import Geometry, Place, move, put, replace
from kvgpu.memory.row_forms import Codec
from kvspec.contract import Pair
from kvspec.geometry import Array, Config


class Drafts:
    """Drafts `[layers, kv_heads, n, dim]` of each call. `ways` has which hangs on which."""

    def __init__(self, space: Workspace, config: Config, layers: int) -> None:
        self.space, self.one = space, config
        self.codec = Codec(space, config)
        self.geometry = Geometry.of(config.changed(batch=layers))
        self.ways, self.blocks = Branches(), list[Rows]()

    def __len__(self) -> int:
        return len(self.ways.bits)

    @property
    def nbytes(self) -> int:
        """Count the bytes of their rows."""
        return sum(rows.nbytes for rows in self.blocks)

    def put(self, source: Place, parents: Sequence[int]) -> None:
        """Write drafts that hang on these. Raises MemoryError."""
        made = Rows(self.space.runtime, self.geometry, source.slots)
        put(self.space.runtime, self.geometry, source.slots, source, made.place, 0)
        self.blocks.append(made)
        self.ways.hang(parents)

    def release(self) -> None:
        """Drop all drafts, and give their memory back."""
        for rows in self.blocks:
            rows.release()
        self.ways, self.blocks = Branches(), []

    def gathered(self, way: Sequence[int]) -> Rows:
        """Copy these drafts behind each other, into memory of their own. Raises MemoryError."""
        made, done = Rows(self.space.runtime, self.geometry, len(way)), 0
        for rows, first, n in self._runs(way):
            move(self.space.runtime, self.geometry, n, rows.place.span(first), made.place.span(done))
            done += n
        return made

    def _runs(self, way: Sequence[int]) -> Iterator[tuple[Rows, int, int]]:
        """Give the block, the first slot and the number of each run of drafts that lie one behind the other."""
        first = 0
        for rows in self.blocks:
            slots = [number - first for number in way if first <= number < first + rows.slots]
            if not slots:
                first += rows.slots
                continue
            begins = [i for i, slot in enumerate(slots) if i == 0 or slot != slots[i - 1] + 1]
            for begin, end in zip(begins, [*begins[1:], len(slots)], strict=True):
                yield rows, slots[begin], end - begin
            first += rows.slots

    def read(self, layer: int) -> Pair:
        """Download the rows of a layer, by the numbers of drafts: `[1, kv_heads, drafts, dim]`."""
        each = [self._block(rows, layer) for rows in self.blocks]
        return Pair(*(np.concatenate(arrays, axis=2) for arrays in zip(*each, strict=True)))

    def _block(self, rows: Rows, layer: int) -> Pair:
        """Download the rows of a layer of one call."""
        if self.space.checks:
            rows.check_guards()
        one = Geometry.of(self.one)
        lines = layer * one.heads * rows.slots
        at = rows.place.keys_at + lines * one.k_bytes, rows.place.values_at + lines * one.v_bytes
        return downloaded(self.codec, rows.slots, replace(rows.place, *at).span())

    def stand(self, queries: int, offset: int) -> list[int]:
        """Give the positions of the newest drafts."""
        return [offset + self.ways.depth(number) - 1 for number in range(len(self) - queries, len(self))]

    def seen(self, queries: int) -> Array:
        """Give, as `[queries, drafts]`, which drafts are on the ways of the newest ones."""
        return self.ways.shown(queries, 0, None)
