"""Fast attention on tensor cores: the kernel of `kernels/fast/attend_warps.cu`, compiled for a geometry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from kvgpu.memory.device_arrays import DeviceRows
from kvgpu.runtime import Block, Work
from kvgpu.runtimes import tensor_map
from kvgpu.runtimes.fast.attention import (
    FLOAT,
    Call,
    FastAttention,
    FastDevice,
    Geometry,
    kinds,
    scale,
    text,
)
from kvspec.geometry import DTYPES

TILE, WARPS, LANES = 16, 4, 32
"""Positions of a tile, warps of a block, lanes of a warp: as in the kernel."""

WIDTHS = range(32, 257, 32)
"""The widths of rows that it takes."""

WIDEST = {"f16": WIDTHS[-1], "bf16": WIDTHS[-1], "f32": 128}
"""The dtypes of rows that it takes, and the largest width of each: two units have to fit a ring."""

MOST_BYTES = 96 << 10
"""Bytes of shared memory for the rings of a block: sm_120 has 99 KiB, and the kernel needs some for other uses."""

MOST_UNITS = 8
"""Most units of copies in the ring of a warp."""

WORTH_SPLITTING = 2 * TILE * WARPS
"""Least positions of a split: two tiles for each warp."""

BEFORE = tuple(f"fast/warp_{name}" for name in ("cuda.h", "rows.cu", "deal.cu", "parts.cu"))
"""The texts that stand before a kernel."""

BLOCKS = {"runs": 7, "pages": 8, "rows": 8}
"""The ways in which rows lie, each with the buffers that its kernel takes."""


class WarpDevice(FastDevice, Protocol):
    """A runtime of the CUDA text."""

    multiprocessors: int

    def learn(self, text: str, names: Mapping[str, int], *, shared: int = 0) -> None:
        """Compile another text. Its kernels are launched with `shared` bytes of shared memory."""

    def launch(self, kernel: str, work: Work, *args: Block | int | tensor_map.TensorMap) -> None:
        """Start a kernel, whose arguments may be maps."""

    def mapped(self, matrix: tensor_map.Matrix) -> tensor_map.TensorMap:
        """Make a map of a matrix, an argument of a kernel that copies boxes."""


class WarpAttention(FastAttention):
    """Attention over rows whose widths are multiples of 32 up to 256, in f32 up to 128. Where rows lie in `pages`,
    these have a multiple of 16 slots; `rows` are pages of any size.

    Results are within the bound of ATTN-44. A geometry is compiled when the first of it is made on a runtime. It
    joins its splits itself, and takes ragged queries.
    """

    kernel = "attend_warps"
    device: WarpDevice

    def __init__(self, runtime: WarpDevice, geometry: Geometry) -> None:
        super().__init__(runtime, geometry)
        with runtime.meter.paused():  # as compiling, it is done once, and no cost of a cache
            runtime.upload(np.zeros(self.workers, np.uint32), self._parts)

    def _learned(self) -> str:
        name = f"{self.kernel}_{self.geometry.name}"
        if not self.device.knows(name):
            self.device.learn(self._program(name), {name: BLOCKS[self.geometry.lie]}, shared=self._shared())
        return name

    def _program(self, name: str) -> str:
        """Write the program text."""
        return source(self.geometry, name, self.workers)

    def _shared(self) -> int:
        """Count the bytes of shared memory."""
        return shared(self.geometry)

    def _columns(self) -> int:
        """Count the columns of a block."""
        return columns(self.geometry)

    def _runs(self, count: int) -> int:
        return passes(self.geometry) * super()._runs(count)

    def _part_bytes(self) -> int:
        """Count the bytes of a part of all columns, and of a counter."""
        return FLOAT * (self._columns() * (self.geometry.v_dim + 2) + 1)

    def _work(self, tasks: int) -> Work:
        return Work(LANES, WARPS * tasks)

    def _worth(self) -> int:
        """Give the least positions of a piece."""
        return WORTH_SPLITTING

    def _dealt(self, runs: int, rows: int) -> tuple[int, tuple[int, int]]:
        """Let the kernel split runs by the lengths that it reads: see `kernels/fast/warp_deal.cu`."""
        if rows < 2 * self._worth():
            return runs, (0, 1)
        workers = self.workers
        return max(workers, runs + workers // 2), (workers, max(1, self._worth() // TILE))

    def _reads(self, call: Call) -> int:
        """Count as `FastAttention` does, or the most if queries are ragged: an entry's last run may not be full."""
        if call.ragged:
            return self._runs(call.each) + call.entries * self._runs(1)
        return super()._reads(call)

    def _launch(self, call: Call, pieces: int, sizes: tuple[int, ...], *more: Block) -> None:
        starts = call.ragged.starts if call.ragged else call.out.block
        super()._launch(call, pieces, (*sizes, int(call.ragged is not None)), starts)

    def _join(self, out: DeviceRows, cells: int, splits: int) -> None:
        """Do nothing: the last block of the kernel has joined the parts."""


def taken(geometry: Geometry) -> bool:
    """Tell whether the kernel takes rows of this geometry."""
    return fits(geometry, WIDTHS, WIDEST)


def fits(geometry: Geometry, widths: range, most: Mapping[str, int]) -> bool:
    """Tell whether keys and values have one of these widths, and at most the largest one of their dtype."""
    known = geometry.k_dim in widths and geometry.v_dim in widths
    return known and widest(geometry) <= most.get(geometry.dtype, 0)


def widest(geometry: Geometry) -> int:
    """Give the larger width of keys and values."""
    return max(geometry.k_dim, geometry.v_dim)


def passes(geometry: Geometry) -> int:
    """Give how often rows are read: 16 heads read them together, or 8 where rows are 129 to 256 wide, in f32 65 to
    128."""
    return -(-geometry.group // _most_columns(geometry))


def together(geometry: Geometry) -> int:
    """Give the number of queries that fill the columns together: one where rows are wider than 192 or in f32,
    because there are too few registers for more."""
    if widest(geometry) > 192 or geometry.dtype == "f32":
        return 1
    return max(1, _most_columns(geometry) // geometry.group)


def _most_columns(geometry: Geometry) -> int:
    """Wide rows, which all warps of a block share, leave as many registers as narrow ones; f32 takes more."""
    narrow = 64 if geometry.dtype == "f32" else 128
    return 8 if narrow < widest(geometry) <= WIDEST[geometry.dtype] else 16


def columns(geometry: Geometry) -> int:
    """Give the columns of a block: heads times queries that read a row together."""
    return -(-geometry.group // passes(geometry)) * geometry.queries


def unit_bytes(geometry: Geometry) -> int:
    """Count the bytes of a unit of copies over all warps of a block: a tile of keys or of values for each."""
    return WARPS * TILE * widest(geometry) * DTYPES[geometry.dtype].itemsize


def units(geometry: Geometry) -> int:
    """Give the number of units in the ring of each warp."""
    return min(MOST_UNITS, MOST_BYTES // unit_bytes(geometry))


def shared(geometry: Geometry) -> int:
    """Count the bytes of shared memory of a block: the rings of its warps."""
    return units(geometry) * unit_bytes(geometry)


def in_flight(geometry: Geometry) -> int:
    """Count the bytes that are under way in a block while it computes: all units of its warps but one each."""
    return (units(geometry) - 1) * unit_bytes(geometry)


def source(geometry: Geometry, name: str, workers: int) -> str:
    """Write the whole program text for a geometry; there are parts for as many splits as `workers`."""
    sizes = heads(geometry) | {"WARPS": WARPS, "UNITS": units(geometry)}
    return program(geometry, name, workers, sizes, "fast/attend_warps.cu")


def heads(geometry: Geometry) -> dict[str, int]:
    """Give the macros that say which heads and queries read a row together."""
    together = {"COLUMNS": columns(geometry), "QUERIES": geometry.queries}
    return {"PASSES": passes(geometry), "PER_PASS": columns(geometry) // geometry.queries, **together}


def program(geometry: Geometry, name: str, workers: int, sizes: Mapping[str, int], *kernel: str) -> str:
    """Write the program text of a kernel, behind the texts that the kernels share."""
    dims = {"K_DIM": geometry.k_dim, "V_DIM": geometry.v_dim, "QUERY_HEADS": geometry.group}
    defined = kinds(geometry) | {"ATTEND": name, "SCALE": scale(geometry.k_dim), "COUNTERS": workers}
    return text({**defined, **dims, **sizes}, "prelude_cuda.h", *BEFORE, *kernel)
