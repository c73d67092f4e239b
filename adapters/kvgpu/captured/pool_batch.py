"""Batches whose rows lie in the pages of a pool: head h of layer l is head `l * kv_heads + h` of a page."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from kvgpu.caches.attention import Pages
from kvgpu.captured.batch import Batch, behind
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.by_hand import LENGTH
from kvgpu.memory.layout import Geometry, Place
from kvgpu.memory.page_pool import Pool
from kvgpu.runtime import Work
from kvspec.contract import Pair
from kvspec.geometry import Config

NOBODY = -1
"""The length of a place that nobody was admitted to."""


class PoolBatch(Batch):
    """The common part of batches of windows and of pages. It has places for `sequences` sequences. Steps pass over
    a place that nobody was admitted to, and its outputs are zeros. `lengths`, i64 `[sequences]`, is the host's copy
    of the lengths, below 0 for such places."""

    def __init__(self, space: Workspace, config: Config, pool: Pool, sequences: int) -> None:
        layers, self.pool, self.geometry = config.layers or 1, pool, Geometry.of(config)
        step = Geometry(layers * sequences, self.geometry.k_bytes, self.geometry.v_bytes)
        taken = Place.packed(space.runtime.allocate(step.packed(config.kv_heads)[1]), step, config.kv_heads)
        super().__init__(space, config, taken, sequences)
        self.tables, self.apart = self.tabled(pool.size), layers * config.kv_heads * pool.size
        self.ends = space.runtime.allocate(sequences * layers * LENGTH.itemsize)
        self.lengths = np.full(sequences, NOBODY, np.int64)
        self._until = np.full(sequences, self.max_len)
        self._look_ahead()
        space.runtime.upload(np.full(sequences * layers, NOBODY, np.int64), self.ends)

    def place(self, layer: int) -> Place:
        """Give the first page, from the first head of a layer on."""
        return self._of_layer(self.pool.rows.place, layer)

    def _of_layer(self, page: Place, layer: int) -> Place:
        """Give a page, from the first head of a layer on."""
        return behind(page, self.geometry, layer * self.config.kv_heads * self.pool.size)

    def _by_layers(self, rows: Pair) -> Pair:
        """Tell layers apart: rows `[layers * kv_heads, n, dim]` as `[layers, kv_heads, n, dim]`."""
        return Pair(*(a.reshape(self.layers, self.config.kv_heads, *a.shape[1:]) for a in rows))

    def lying(self, layer: int) -> Pages:
        """Say where the rows of a layer lie, for attention."""
        return Pages(self.place(layer), self.apart, self.tables.entries, 0, self.tables.wide)

    def demand(self) -> None:
        """Make room, or refuse, where a sequence has filled the room that it has."""
        if self._left == 0:
            self._make_room()

    @abstractmethod
    def _make_room(self) -> None:
        """Make room for a row of each sequence, or refuse; `_look_ahead` after that."""

    def _look_ahead(self) -> None:
        """Count the steps that there is room for, up to the lengths `_until`; -1 for any number."""
        there = self.lengths >= 0
        self._there = there.astype(np.int64)
        self._left = int((self._until - self.lengths)[there].min()) if there.any() else -1

    def advance(self) -> None:
        """Advance every length, where there is a sequence."""
        self.lengths += self._there
        self._left -= 1

    def drop(self, sequence: int) -> None:
        """Drop a sequence: steps pass over its place."""
        self._demand_sequence(sequence)
        self._set_length(sequence, NOBODY)

    def _set_length(self, sequence: int, n: int) -> None:
        """Set the length of a sequence in every layer; one launch."""
        first, count, add, low, high = sequence * self.layers, self.layers, 0, n, n
        self.space.runtime.launch("bound", Work(1, count), self.ends, first, count, add, low, high)
        self.lengths[sequence] = n
        self._look_ahead()

    def _demand_place(self, sequence: int, n: int) -> None:
        """Raise ValueError for a place that does not exist, and for a length above `max_len`."""
        if not 0 <= sequence < self.sequences:
            raise ValueError(f"sequence {sequence}: the batch has places for {self.sequences}")
        if n > self.max_len:
            raise ValueError(f"sequence {sequence}: {n} rows, more than the {self.max_len} that it may have")

    def _demand_sequence(self, sequence: int) -> int:
        """Give the length of a sequence. Raises ValueError if there is none."""
        self._demand_place(sequence, 0)
        if self.lengths[sequence] < 0:
            raise ValueError(f"sequence {sequence}: nobody was admitted to its place")
        return int(self.lengths[sequence])
