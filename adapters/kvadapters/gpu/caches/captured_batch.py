"""A decode step of a store's batch captured whole, on a runtime of the CUDA text.

With attention on tensor cores it is two launches a layer, whatever the lengths of the sequences.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvadapters.gpu import kernels
from kvadapters.gpu.caches import attention
from kvadapters.gpu.caches.attention import Positions, Runs
from kvadapters.gpu.caches.attention_store import runs
from kvadapters.gpu.caches.captured_step import Between, Step
from kvadapters.gpu.caches.queries import FLOAT
from kvadapters.gpu.caches.store import Store
from kvadapters.gpu.memory import rope_angles
from kvadapters.gpu.memory.device_arrays import DeviceRows
from kvadapters.gpu.memory.layout import Place
from kvadapters.gpu.runtime import Work
from kvspec.contract import Rope
from kvspec.geometry import DTYPES
from kvspec.refusals import common as refusals

BLOCKS = 8
"""Arguments of the kernel that are buffers."""


class CapturedBatchStep(Step):
    """A captured step of the sequences of a batch, as many as there are now. Rows are in `rows`, the batch's input:
    keys and values `[layers, sequences, kv_heads, dim]`."""

    def __init__(
        self, store: Store, heads: int, turn: Rope | None = None, splits: int = 1, between: Between | None = None
    ) -> None:
        self.batch = store.demand_batch("capture")
        super().__init__(store, heads, len(self.batch.lengths), turn, splits, between)
        self.rows = self._input()
        self._kernel = learned(self.space.runtime, store.config.dtype)
        self._table = self.space.runtime.allocate(max(1, store.max_len * self._dims) * FLOAT.itemsize)
        if turn:
            lines = rope_angles.table(np.arange(store.max_len, dtype=np.int64), self._dims, turn.base)
            self.space.runtime.upload(lines, self._table)
        self._capture()

    def _input(self) -> tuple[DeviceRows, DeviceRows]:
        config, place, runtime = self.store.config, self.batch.taken, self.space.runtime
        front, dtype = (self._layers, self.entries, config.kv_heads), DTYPES[config.dtype]
        keys = DeviceRows(runtime, place.keys, (*front, config.k_dim), dtype, place.keys_at)
        return keys, DeviceRows(runtime, place.values, (*front, config.v_dim), dtype, place.values_at)

    def _append(self, layer: int, queries: DeviceRows) -> DeviceRows:
        """One launch."""
        config, batch = self.store.config, self.batch
        keys, values = (rows[layer : layer + 1] for rows in self.rows)
        to = batch.memory.begin(layer * batch.places)
        blocks = keys.block, values.block, queries.block, self._turned.block, self._table, to.keys, to.values
        heads = config.kv_heads, queries.shape[1] // config.kv_heads
        norm = self._turn is None or self._turn.pairing == "norm"
        pairs = self._dims, *((2, 1) if norm else (1, self._dims // 2))
        size = DTYPES[config.dtype].itemsize
        places = keys.at // size, values.at // size, queries.at // FLOAT.itemsize, *_elements(to, size), to.slots
        numbers = self.entries, *heads, config.k_dim, config.v_dim, *pairs, *places, layer, batch.layers
        work = Work(max(config.k_dim, config.v_dim), 1, self.entries)
        self.space.runtime.launch(self._kernel, work, *blocks, batch.memory.lengths, *numbers)
        self.space.runtime.meter.device_to_device += self.entries * config.row_bytes
        return self._turned

    def _lying(self, layer: int) -> tuple[Runs, Positions]:
        memory, layers = self.batch.memory, self.batch.layers
        return runs(memory, layer * self.batch.places), Positions(lengths=memory.lengths, at=layer, stride=layers)

    def take(self, queries: Any, keys: Any, values: Any) -> None:
        """Copy queries and rows of all layers to where the step finds them."""
        attention.put(queries, self.queries)
        self.batch.take(keys, values)

    def replay(self) -> None:
        """Do the step: every sequence becomes one row longer. Refuses what a captured step of the batch refuses."""
        if self.store.batched is not self.batch:
            raise refusals.dropped("BATCH-26")
        if len(self.batch.lengths) != self.entries:
            raise refusals.captured_size("BATCH-27", self.entries, len(self.batch.lengths))
        lengths, held = self.batch.lengths, self.batch.held
        if lengths.max() == self.store.max_len or (lengths != held.T).any():
            self.store.demand_step(self.batch, *self.rows)  # it refuses; asked alone because it takes longer
        self.work.replay()
        self.batch.advance()


def learned(runtime: Any, dtype: str) -> str:
    """Give the name of the kernel for rows of a dtype, compiled unless the runtime knows it."""
    name = f"step_turned_{dtype}"
    if not runtime.knows(name):
        runtime.learn(source(name, dtype), {name: BLOCKS})
    return name


def source(name: str, dtype: str) -> str:
    """Write the program text. In it the kernel that turns rows is a function that a warp calls."""
    of_a_warp = {"KERNEL": "static __device__ void", "GROUP(axis)": "0", "GROUPS(axis)": "1"}
    of_a_warp |= {"ITEM(axis)": "((axis) ? 0 : (i64)threadIdx.x)", "ITEMS(axis)": "((axis) ? 1 : (i64)blockDim.x)"}
    macros = "".join(f"#undef {k.partition('(')[0]}\n#define {k} {v}\n" for k, v in of_a_warp.items())
    before = "".join(map(kernels.text, ("prelude_cuda.h", "casts.inc", "strict.inc"))) + macros
    element, rope = kernels.NUMBERS[dtype][0], f"rope_{dtype}"
    named = f"#define STEP_TURNED {name}\n#define ELEMENT {element}\n#define ROPE {rope}\n"
    return before + kernels.several([rope]) + named + kernels.text("step_turned.cu")


def _elements(place: Place, size: int) -> tuple[int, int]:
    return place.keys_at // size, place.values_at // size
