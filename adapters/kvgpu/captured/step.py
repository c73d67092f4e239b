"""A decode step captured whole: RoPE, append and attention of every layer of a store are one replay a token.

Lengths and positions are read on the device, so that replays go on from step to step. `batch_step` has the same of
many sequences.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from kvgpu.caches import attention, rope
from kvgpu.caches.attention import TILE, Pages, Positions, Runs, prepare
from kvgpu.caches.attention_store import runs
from kvgpu.caches.queries import FLOAT, asked, demand_how
from kvgpu.caches.store import Store
from kvgpu.captured.batch import behind
from kvgpu.memory import rope_angles
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.device_arrays import DeviceRows
from kvgpu.memory.layout import Geometry, Place
from kvgpu.memory.rope_tables import Tables
from kvgpu.runtime import Block, Runtime, Work
from kvspec.contract import Rope
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, Array, Config
from kvspec.masks import CAUSAL
from kvspec.refusals import attention as refusals


class Line(Tables):
    """Takes one line of a table of all positions: that of a length on the device."""

    def __init__(self, runtime: Runtime, positions: int, dims: int, turn: Rope) -> None:
        super().__init__(runtime)
        whole = rope_angles.table(np.arange(positions, dtype=np.int64), dims, turn.base, turn.scaling)
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

    def table(self, positions: Array, dims: int, rope: Rope) -> Block:
        """Give the line that `find` took, whatever the positions are."""
        return self._line


Between = Callable[["Step", int], None]


class Step(ABC):
    """A captured step of all layers, over `entries` entries in each.

    `take` puts queries into `queries`, f32 `[layers * entries, heads, 1, k_dim]`, and rows where the step finds
    them. Outputs are in `out`, f32 `[layers * entries, heads, 1, v_dim]`. `between(step, layer)`, if given,
    launches the work of a model before a layer attends, such as making queries from the outputs of the layer
    before. It is captured too.
    """

    def __init__(
        self,
        runtime: Runtime,
        config: Config,
        heads: int,
        entries: int = 1,
        turn: Rope | None = None,
        splits: int = 1,
        between: Between | None = None,
    ) -> None:
        assert config.layers is not None and config.max_len is not None
        if config.form is not None:
            raise Unsupported(f"a captured step of all layers takes plain rows, not rows in the form {config.form}")
        self.config, self.entries, self._layers, self._max_len = config, entries, config.layers, config.max_len
        demand_how(config, heads, splits)
        self._dims = rope.demand(turn, config.k_dim)
        self._turn, self._splits, self._between = turn, splits, between
        self.space = Workspace(runtime)
        self.queries = self._room("queries", self._layers * entries, heads, config.k_dim)
        self.out = self._room("outputs", self._layers * entries, heads, config.v_dim)
        self._turned = self._room("turned queries", entries, heads, config.k_dim)

    def _capture(self) -> None:
        self._attend(0, self._turned)  # compiles and allocates now: neither is allowed during the capture
        self.work = self.space.runtime.capture(self._launch)

    def _room(self, name: str, entries: int, heads: int, width: int, dtype: np.dtype[Any] = FLOAT) -> DeviceRows:
        shape = entries, heads, 1, width
        return DeviceRows(self.space.runtime, self.space.scratch(name, prod(shape) * dtype.itemsize), shape, dtype)

    def of_layer(self, rows: DeviceRows, layer: int) -> DeviceRows:
        """Give the entries of a layer."""
        return rows[layer * self.entries : (layer + 1) * self.entries]

    def _launch(self) -> None:
        for layer in range(self._layers):
            if self._between:
                self._between(self, layer)
            self._attend(layer, self._append(layer, self.of_layer(self.queries, layer)))

    def _attend(self, layer: int, queries: DeviceRows) -> None:
        window, out = self.config.window, self.of_layer(self.out, layer)
        most = self._max_len if window is None else window + TILE  # a tile may begin within the window
        ready = prepare(self.space, self.config, queries, asked(CAUSAL, window), self._splits, most, out)
        ready.launch(*self._lying(layer))

    def take(self, queries: Any, keys: Any, values: Any) -> None:
        """Copy queries and rows of all layers to where the step finds them. Raises ValueError for other shapes or
        dtypes than were captured: they would be copied past their place."""
        config, (asks, rows) = self.config, self._taken()
        self._demand("queries", queries, (*asks, config.k_dim), FLOAT)
        self._demand("keys", keys, (*rows, config.k_dim), DTYPES[config.dtype])
        self._demand("values", values, (*rows, config.v_dim), DTYPES[config.dtype])
        attention.put(queries, self.queries)
        self._put(keys, values)

    @staticmethod
    def _demand(name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        if (tuple(array.shape), array.dtype) != (shape, dtype):
            found = f"{array.dtype} {list(array.shape)}"
            raise ValueError(f"{name}: this step was captured for {dtype} {list(shape)}, not {found}")

    @abstractmethod
    def _taken(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Give the shapes of the queries and of the rows that a step takes, without their width."""

    @abstractmethod
    def _put(self, keys: Any, values: Any) -> None:
        """Copy rows to where the step finds them."""

    @abstractmethod
    def _append(self, layer: int, queries: DeviceRows) -> DeviceRows:
        """Append a layer's row, and give its queries; both turned where there is RoPE."""

    @abstractmethod
    def _lying(self, layer: int) -> tuple[Runs | Pages, Positions]:
        """Give where the rows of a layer lie, and their ends."""


class CapturedStep(Step):
    """A captured step of a store: an entry is its only sequence. Rows are in `rows`, keys `[layers, kv_heads, 1,
    k_dim]` and such values."""

    def __init__(
        self,
        store: Store,
        heads: int,
        turn: Rope | None = None,
        splits: int = 1,
        between: Between | None = None,
    ) -> None:
        config, runtime, self.layers = store.config, store.space.runtime, store.layers
        super().__init__(runtime, config, heads, 1, turn, splits, between)
        self.store = store
        self._geometry = self.layers.geometry_of(self.layers.groups)
        self.rows = Place.packed(self.space.scratch("rows", self._geometry.packed(1)[1]), self._geometry, 1)
        self._keys = self._room("turned keys", 1, config.kv_heads, config.k_dim, DTYPES[config.dtype])
        self._line = Line(runtime, store.max_len, self._dims, turn) if turn else None
        self.space.tables = self._line or self.space.tables
        self._capture()

    def _launch(self) -> None:
        if self._line:
            self._line.find(self.layers.lengths)
        super()._launch()

    def _append(self, layer: int, queries: DeviceRows) -> DeviceRows:
        """Two launches where there is RoPE, else one."""
        place = behind(self.rows, self._geometry, layer * self.config.kv_heads)
        if self._turn:
            keys = replace(self._keys, block=place.keys, at=place.keys_at)
            turned = (keys, self._keys), (queries, self._turned)
            rope._turn(self.space, np.zeros(1), self._turn, self._dims, *turned)
            place, queries = place._replace(keys=self._keys.block, keys_at=0), self._turned
        self.layers.place(place, layer, 1)
        return queries

    def _lying(self, layer: int) -> tuple[Runs, Positions]:
        return runs(self.layers, layer), Positions(lengths=self.layers.lengths, at=layer)

    def _taken(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.queries.shape[:-1], (self._layers, self.config.kv_heads, 1)

    def _put(self, keys: Any, values: Any) -> None:
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
