"""Fast attention on CPU devices: the kernel of `kernels/fast/attend_rows.cl`, compiled for a geometry."""

from __future__ import annotations

import math
from importlib.resources import files

import numpy as np

from kvadapters.gpu import kernels
from kvadapters.gpu.memory.device_arrays import DeviceRows
from kvadapters.gpu.runtime import Work
from kvadapters.gpu.runtimes.fast.attention import FLOAT, FastAttention, Geometry
from kvadapters.gpu.runtimes.opencl import OpenCLRuntime
from kvspec.errors import CannotRun

WORTH_SPLITTING = 1 << 20
"""Least bytes of rows in a split: the joining launch takes about as long as reading them."""

BLOCKS = {"runs": 6, "pages": 7}
"""The ways in which rows lie, each with the buffers that its kernel takes."""

INSTALL = "it takes a CPU runtime of OpenCL; pip install 'kvconform[opencl]' brings one"


class RowAttention(FastAttention):
    """Attention over rows in f32, f16 or bf16.

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
        self.runtime = runtime
        super().__init__(runtime, Geometry(dtype, k_dim, v_dim, heads, kv_heads, lie, queries))

    def _learned(self) -> str:
        attend, self._joining = names(self.geometry)
        if not self.runtime.knows(attend):
            text = source(self.geometry, self.runtime.lanes)
            self.runtime.learn(text, {attend: BLOCKS[self.geometry.lie], self._joining: 2})
        return attend

    def _part_bytes(self) -> int:
        return self.geometry.group * self.geometry.queries * (self.geometry.v_dim + 2) * FLOAT

    def _work(self, tasks: int) -> Work:
        return Work(1, tasks)

    def _dealt(self, runs: int, rows: int) -> tuple[int, tuple[int, ...]]:
        """Split each run into as many pieces: enough to keep the device busy, none too short."""
        worth = rows * (self.geometry.k_dim + self.geometry.v_dim) * self.size // WORTH_SPLITTING
        splits = max(1, min(-(-self.device.workers // max(1, runs)), worth))
        return runs * splits, (splits,)

    def _join(self, out: DeviceRows, cells: int, splits: int) -> None:
        self.runtime.launch(self._joining, Work(1, cells), self._parts, out.block, cells, splits, out.at // FLOAT)


def demand(runtime: OpenCLRuntime) -> None:
    """Raise CannotRun if the device is no CPU."""
    if not runtime.cpu:
        raise CannotRun(f"attention by rows is not for {runtime.describe()['device']}; {INSTALL}")


def names(geometry: Geometry) -> tuple[str, str]:
    """Name the two kernels."""
    return f"attend_rows_{geometry.name}", f"join_rows_{geometry.name}"


def scale(k_dim: int) -> str:
    """Write the factor of scores, log2(e) / sqrt(k_dim), as C reads it."""
    return f"{float(np.float32(math.log2(math.e) / math.sqrt(k_dim))).hex()}f"


def source(geometry: Geometry, lanes: int) -> str:
    """Write the whole program text for a geometry; a vector has `lanes` floats."""
    attend, join = names(geometry)
    dtype, k_dim, v_dim, _, _, lie, queries = geometry
    defined: dict[str, str | int] = {
        "ATTEND": attend,
        "JOIN": join,
        f"ROW_{dtype.upper()}": 1,
        "K_DIM": k_dim,
        "V_DIM": v_dim,
    }
    defined |= {"QUERY_HEADS": geometry.group, "QUERIES": queries, "SCALE": scale(k_dim), "LANES": lanes}
    defined[lie.upper()] = 1
    return text(defined, "prelude_cl.h", "fast/attend_rows.cl")


def text(defined: dict[str, str | int], *names: str) -> str:
    """Write the texts of these names behind the definitions of these macros."""
    lines = "".join(f"#define {name} {means}\n" for name, means in defined.items())
    return lines + "".join(files(kernels).joinpath(name).read_text() for name in names)
