"""A decode step of a batch captured whole, on a runtime of the CUDA text.

With attention on tensor cores it is two launches a layer, whatever the lengths of the sequences.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvgpu import kernels
from kvgpu.caches.attention import Pages, Positions, Runs
from kvgpu.caches.queries import FLOAT
from kvgpu.captured.batch import Batch
from kvgpu.captured.step import Between, Step
from kvgpu.memory import rope_angles
from kvgpu.memory.device_arrays import DeviceRows
from kvgpu.runtime import Work
from kvspec.contract import Rope
from kvspec.geometry import DTYPES

BLOCKS = 10
"""Arguments of the kernel that are buffers."""


class CapturedBatchStep(Step):
    """A captured step of the sequences of a batch: see `growing_batch`, `window_batch`, `page_batch`."""

    def __init__(
        self, batch: Batch, heads: int, turn: Rope | None = None, splits: int = 1, between: Between | None = None
    ) -> None:
        self.batch = batch
        super().__init__(batch.space.runtime, batch.config, heads, batch.sequences, turn, splits, between)
        self._kernel = learned(self.space.runtime, batch.config.dtype)
        self._angles = self.space.runtime.allocate(max(1, batch.max_len * self._dims) * FLOAT.itemsize)
        if turn:
            positions = np.arange(batch.max_len, dtype=np.int64)
            lines = rope_angles.table(positions, self._dims, turn.base, turn.scaling)
            self.space.runtime.upload(lines, self._angles)
        self._capture()

    def _append(self, layer: int, queries: DeviceRows) -> DeviceRows:
        """One launch."""
        config, batch, to = self.config, self.batch, self.batch.place(layer)
        keys, values = (rows[layer : layer + 1] for rows in batch.rows)
        given = keys.block, values.block, queries.block, self._turned.block, self._angles
        blocks = *given, to.keys, to.values, batch.ends, batch.tables.entries, batch.tables.following
        size = DTYPES[config.dtype].itemsize
        begins = (at // size for at in (keys.at, values.at, to.keys_at, to.values_at))
        pages = to.slots, batch.apart, batch.tables.wide, layer, batch.layers
        numbers = *self._sizes(), *begins, queries.at // FLOAT.itemsize, *pages
        work = Work(max(config.k_dim, config.v_dim), 1, self.entries)
        self.space.runtime.launch(self._kernel, work, *blocks, *numbers)
        self.space.runtime.meter.device_to_device += self.entries * config.row_bytes
        return self._turned

    def _sizes(self) -> tuple[int, ...]:
        """Give the sequences, heads and widths. Then give the elements of a row that are turned, the step from
        pair to pair, and the step from the first to the second element of a pair."""
        config, heads = self.config, self.queries.shape[1]
        norm = self._turn is None or self._turn.pairing == "norm"
        pairs = (2, 1) if norm else (1, self._dims // 2)
        groups = config.kv_heads, heads // config.kv_heads
        return self.entries, *groups, config.k_dim, config.v_dim, self._dims, *pairs

    def _lying(self, layer: int) -> tuple[Runs | Pages, Positions]:
        return self.batch.lying(layer), self.batch.positions(layer)

    def _taken(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """With an axis of sequences behind that of layers."""
        of_all = self.batch.layers, self.batch.sequences
        return (*of_all, self.queries.shape[1], 1), (*of_all, self.config.kv_heads)

    def _put(self, keys: Any, values: Any) -> None:
        self.batch.take(keys, values)

    def replay(self) -> None:
        """Do the step: every sequence becomes one row longer. Refuses what the batch refuses."""
        self.batch.demand()
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
    before = "".join(map(kernels.text, ("prelude_cuda.h", "casts.inc", "strict.inc")))
    macros = kernels.undefines(of_a_warp) + kernels.defines(of_a_warp)
    rope = f"rope_{dtype}"
    named = kernels.defines({"STEP_TURNED": name, "ELEMENT": kernels.NUMBERS[dtype][0], "ROPE": rope})
    return before + macros + kernels.several([rope]) + named + kernels.text("fast/step_turned.cu")
