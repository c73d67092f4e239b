"""Fast attention on CPU devices: the kernel of `kernels/attend_rows.cl`, compiled for a geometry, and launched."""

from __future__ import annotations

import math
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from kvadapters.gpu import kernels
from kvadapters.gpu.caches.attention import Pages, Positions, Runs
from kvadapters.gpu.memory.device_arrays import DeviceRows
from kvadapters.gpu.runtime import Work
from kvadapters.gpu.runtimes.opencl import OpenCLRuntime
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES

WORTH_SPLITTING = 1 << 20
"""Least bytes of rows in a split: the joining launch takes about as long as reading them."""

BLOCKS = {"runs": 6, "pages": 7}
"""The ways in which rows lie, each with the buffers that its kernel takes."""

FLOAT = 4
"""Bytes of an f32."""

INSTALL = "it takes a CPU runtime of OpenCL; pip install 'kvconform[opencl]' brings one"


class RowAttention:
    """Attention of f32 queries over rows in f32, f16 or bf16, with all sums in f32. Query head h reads kv head h //
    (heads / kv_heads); scores are q k / sqrt(k_dim), and must be finite in f32 when multiplied by log2(e).

    For the error of a result see tests/adapters/kernels/test_row_attention.py. A geometry is compiled when the
    first of it is made on a runtime. Raises CannotRun if the device is no CPU.
    """

    def __init__(
        self,
        runtime: OpenCLRuntime,
        dtype: str,
        k_dim: int,
        v_dim: int,
        heads: int,
        kv_heads: int,
        lie: str = "runs",
        queries: int = 1,
    ) -> None:
        demand(runtime)
        self.runtime, self.heads, self.kv_heads = runtime, heads, kv_heads
        self.k_dim, self.v_dim, self.size = k_dim, v_dim, DTYPES[dtype].itemsize
        self.queries, shape = queries, Shape(lie, dtype, k_dim, v_dim, heads // kv_heads, queries)
        self._attend, self._join = shape.names
        if not runtime.knows(self._attend):
            text = source(shape, runtime.lanes)
            runtime.learn(text, {self._attend: BLOCKS[lie], self._join: 2})
        # Only fewer runs than workers are split, into fewer pieces than twice as many altogether.
        self._parts = runtime.allocate(2 * runtime.workers * (heads // kv_heads) * queries * (v_dim + 2) * FLOAT)

    def attend(
        self,
        queries: DeviceRows,
        rows: Runs | Pages,
        positions: Positions,
        out: DeviceRows,
        causal: bool = True,
        window: int = 0,
        most: int | None = None,
    ) -> None:
        """Write the outputs `[entries, heads, n, v_dim]` of queries `[entries, heads, n, k_dim]`, both f32, over
        the rows of each entry: see `caches.attention` for where these lie and where the queries stand.

        A query sees the positions up to its own if `causal`, else all, of them none further back than the newest
        `window` up to its own (0: any number). Zeros come out where it sees none, and no row is read that no query
        sees. `most` is how many positions there will be at most, where their end is on the device. One launch or
        two and nothing else, which may be captured.
        """
        entries, _, count, _ = queries.shape
        held = positions.end - positions.first if most is None else most
        runs = entries * self.kv_heads * -(-count // self.queries)
        splits = self.splits(runs, min(held, window + count) if window else held)
        blocks = (
            queries.block,
            rows.place.keys,
            rows.place.values,
            positions.lengths or out.block,
            self._parts,
            out.block,
            *((rows.tables,) if isinstance(rows, Pages) else ()),
        )
        places = (
            queries.at // FLOAT,
            out.at // FLOAT,
            rows.place.keys_at // self.size,
            rows.place.values_at // self.size,
        )
        lies = rows.place.slots, *_lying(rows)
        ends = positions.first, positions.end, int(positions.lengths is not None), positions.at, positions.stride
        sizes = entries, self.kv_heads, count, splits
        work = Work(1, runs * splits)
        self.runtime.launch(self._attend, work, *blocks, *sizes, *places, *lies, *ends, int(causal), window)
        if splits > 1:
            cells = entries * self.heads * count
            self.runtime.launch(self._join, Work(1, cells), self._parts, out.block, cells, splits, places[1])

    def splits(self, runs: int, rows: int) -> int:
        """Choose the number of pieces of each run of rows: enough to keep the device busy, none too short."""
        worth = rows * (self.k_dim + self.v_dim) * self.size // WORTH_SPLITTING
        return max(1, min(self._enough(runs), worth))

    def _enough(self, runs: int) -> int:
        return -(-self.runtime.workers // max(1, runs))


def _lying(rows: Runs | Pages) -> tuple[int, ...]:
    if isinstance(rows, Pages):
        return rows.page, rows.at, rows.stride
    return rows.entry, rows.start, rows.before, rows.then


def demand(runtime: OpenCLRuntime) -> None:
    """Raise CannotRun if the device is no CPU."""
    if not runtime.cpu:
        raise CannotRun(f"attention by rows is not for {runtime.describe()['device']}; {INSTALL}")


class Shape(NamedTuple):
    """What the kernel is compiled for: rows lie in `runs` or `pages`, `group` query heads share a kv head, and a
    work-item takes `queries` queries together."""

    lie: str
    dtype: str
    k_dim: int
    v_dim: int
    group: int
    queries: int

    @property
    def names(self) -> tuple[str, str]:
        """Name the two kernels."""
        geometry = "_".join(map(str, self))
        return f"attend_rows_{geometry}", f"join_rows_{geometry}"


def source(shape: Shape, lanes: int) -> str:
    """Write the whole program text for a shape; a vector has `lanes` floats."""
    (attend, join), (lie, dtype, k_dim, v_dim, group, queries) = shape.names, shape
    scale = float(np.float32(math.log2(math.e) / math.sqrt(k_dim)))
    defined = {"ATTEND": attend, "JOIN": join, f"ROW_{dtype.upper()}": 1, "K_DIM": k_dim, "V_DIM": v_dim}
    defined |= {"QUERY_HEADS": group, "QUERIES": queries, "SCALE": f"{scale.hex()}f", "LANES": lanes}
    defined[lie.upper()] = 1
    lines = "".join(f"#define {name} {means}\n" for name, means in defined.items())
    folder = files(kernels)
    return lines + "".join(folder.joinpath(name).read_text() for name in ("prelude_cl.h", "attend_rows.cl"))
