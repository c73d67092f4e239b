"""A decode step of a store captured whole: RoPE, append and attention of every layer are one replay a token.

Lengths and positions are read on the device, so that replays go on from step to step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from kvadapters.gpu.caches import attention, rope
from kvadapters.gpu.caches.attention import Positions, prepare
from kvadapters.gpu.caches.attention_store import runs
from kvadapters.gpu.caches.queries import FLOAT, asked, demand_how
from kvadapters.gpu.caches.store import Store
from kvadapters.gpu.memory import rope_angles
from kvadapters.gpu.memory.buffers import Workspace
from kvadapters.gpu.memory.device_arrays import DeviceRows
from kvadapters.gpu.memory.layout import Geometry, Place
from kvadapters.gpu.memory.rope_tables import Tables
from kvadapters.gpu.runtime import Block, Runtime, Work
from kvspec.contract import Rope
from kvspec.geometry import DTYPES, Array
from kvspec.masks import CAUSAL
from kvspec.refusals import attention as refusals


class Line(Tables):
    """The line of a table of all positions that stands at a length which the device knows."""

    def __init__(self, runtime: Runtime, positions: int, dims: int, base: int) -> None:
        super().__init__(runtime)
        whole = rope_angles.table(np.arange(positions, dtype=np.int64), dims, base)
        self._geometry = Geometry(1, dims * FLOAT.itemsize, 0)
        self._whole, self._line = runtime.allocate(whole.nbytes), runtime.allocate(self._geometry.k_bytes)
        runtime.upload(whole, self._whole)

    def find(self, lengths: Block) -> None:
        """Take the line of the first of some lengths; one launch. Lines are pages of one row, and the low half of
        the length is the number of the page."""
        word = self._geometry.word
        width = self._geometry.k_bytes // word
        blocks = self._line, self._line, self._whole, self._whole, lengths
        gather, heads, rows, first, size = 1, 1, 1, 0, 1
        starts = 0, 0, 0, 0
        numbers = gather, heads, rows, first, width, 0, *starts, size
        self._runtime.launch(f"page{word}", Work(width, rows), *blocks, *numbers)

    def table(self, positions: Array, dims: int, base: int) -> Block:
        """Give the line; where it stands is not asked."""
        return self._line


class CapturedStep:
    """A captured step of all layers of a store.

    What it works on goes into `queries`, f32 `[layers, heads, 1, k_dim]`, and `rows`, keys `[layers, kv_heads, 1,
    k_dim]` and such values: by kernels, or by `take`. Outputs are in `out`, f32 `[layers, heads, 1, v_dim]`.
    `between(step, layer)`, if given, launches what a model does before a layer attends, such as making queries of
    the outputs of the layer before; it is captured too.
    """

    def __init__(
        self,
        store: Store,
        heads: int,
        turn: Rope | None = None,
        splits: int = 1,
        between: Callable[[CapturedStep, int], None] | None = None,
    ) -> None:
        config, runtime = store.config, store.space.runtime
        demand_how(config, heads, splits)
        self._dims = rope.demand(turn, config.k_dim)
        self.store, self.layers, self._turn, self._splits, self._between = (
            store,
            store.layers,
            turn,
            splits,
            between,
        )
        self.space, self._geometry = Workspace(runtime), self.layers.geometry_of(self.layers.groups)
        self.queries = self._room("queries", self.layers.groups, heads, config.k_dim)
        self.out = self._room("outputs", self.layers.groups, heads, config.v_dim)
        self.rows = Place.packed(self.space.scratch("rows", self._geometry.packed(1)[1]), self._geometry, 1)
        self._line = Line(runtime, store.max_len, self._dims, turn.base) if turn else None
        self.space.tables = self._line or self.space.tables
        self._turned = self._room("turned queries", 1, heads, config.k_dim), self._room_for_keys()
        self._attend(0, self.queries[:1])  # what has to be compiled or allocated is so before the capture
        self.work = runtime.capture(self._launch)

    def _room(self, name: str, layers: int, heads: int, width: int) -> DeviceRows:
        shape = layers, heads, 1, width
        return DeviceRows(self.space.runtime, self.space.scratch(name, prod(shape) * FLOAT.itemsize), shape, FLOAT)

    def _room_for_keys(self) -> DeviceRows:
        config = self.store.config
        block = self.space.scratch("turned keys", config.kv_heads * self._geometry.k_bytes)
        return DeviceRows(self.space.runtime, block, (1, config.kv_heads, 1, config.k_dim), DTYPES[config.dtype])

    def _launch(self) -> None:
        if self._line:
            self._line.find(self.layers.lengths)
        for layer in range(self.layers.groups):
            if self._between:
                self._between(self, layer)
            queries = self.queries[layer : layer + 1]
            self.layers.place(self._source(layer, queries), layer, 1)
            self._attend(layer, self._turned[0] if self._turn else queries)

    def _source(self, layer: int, queries: DeviceRows) -> Place:
        """The layer's new row. Where there is RoPE its key and queries are turned: one launch."""
        before = layer * self.store.config.kv_heads
        keys_at = self.rows.keys_at + before * self._geometry.k_bytes
        place = self.rows._replace(keys_at=keys_at, values_at=self.rows.values_at + before * self._geometry.v_bytes)
        if self._turn is None:
            return place
        to_queries, to_keys = self._turned
        keys = replace(to_keys, block=place.keys, at=keys_at)
        rope._turn(self.space, np.zeros(1), self._turn, self._dims, (keys, to_keys), (queries, to_queries))
        return place._replace(keys=to_keys.block, keys_at=0)

    def _attend(self, layer: int, queries: DeviceRows) -> None:
        out = self.out[layer : layer + 1]
        store = self.store
        ready = prepare(self.space, store.config, queries, asked(CAUSAL), self._splits, store.max_len, out)
        ready.launch(runs(self.layers, layer), Positions(lengths=self.layers.lengths, at=layer))

    def take(self, queries: Any, keys: Any, values: Any) -> None:
        """Copy queries and rows of all layers to where the step finds them."""
        attention.put(queries, self.queries)
        self.space.staged(self._geometry, keys, values, block=self.rows.keys)

    def replay(self) -> None:
        """Do the step: every layer becomes one row longer. Refuses a store that was made anew or is full; raises
        ValueError where layers differ in length, because they share the position of RoPE."""
        if self.store.layers is not self.layers:
            raise refusals.dropped("ATTN-22")
        lengths = self.store.lengths_
        self.store._demand_room(0, len(lengths), 1)
        if self._turn and min(lengths) != max(lengths):
            raise ValueError(f"a step with RoPE takes layers of one length, not {min(lengths)} to {max(lengths)}")
        self.work.replay()
        self.store.lengths_ = [n + 1 for n in lengths]
