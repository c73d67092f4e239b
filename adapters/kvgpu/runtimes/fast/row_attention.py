"""Fast attention on CPU devices: the kernel of `kernels/fast/attend_rows.cl`, compiled for a geometry."""

from __future__ import annotations

from kvgpu.memory.device_arrays import DeviceRows
from kvgpu.runtime import Work
from kvgpu.runtimes.fast import form_rows
from kvgpu.runtimes.fast.attention import FLOAT, FastAttention, Geometry, kinds, scale, text
from kvgpu.runtimes.opencl import OpenCLRuntime
from kvspec.errors import CannotRun

WORTH_SPLITTING = 1 << 20
"""Least bytes of rows in a split: the launch that joins splits takes about as long as reading them."""

BLOCKS = {"runs": 6, "pages": 7}
"""The ways in which rows lie, each with the buffers that its kernel takes."""

INSTALL = "it takes a CPU runtime of OpenCL; pip install 'kvconform[opencl]' brings one"


class RowAttention(FastAttention):
    """Attention over rows in f32, f16 or bf16, or in a form that is `form_rows.readable`.

    For the error of a result see tests/adapters/kernels/test_row_attention.py. A geometry is compiled when the
    first of it is made on a runtime. Raises CannotRun if the device is no CPU.
    """

    device: OpenCLRuntime

    def __init__(self, runtime: OpenCLRuntime, geometry: Geometry) -> None:
        demand(runtime)
        super().__init__(runtime, geometry)

    def _learned(self) -> str:
        attend, self._joining = names(self.geometry)
        if not self.device.knows(attend):
            program = source(self.geometry, self.device.lanes)
            self.device.learn(program, {attend: BLOCKS[self.geometry.lie], self._joining: 2})
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
        self.device.launch(self._joining, Work(1, cells), self._parts, out.block, cells, splits, out.at // FLOAT)


def demand(runtime: OpenCLRuntime) -> None:
    """Raise CannotRun if the device is no CPU."""
    if not runtime.cpu:
        raise CannotRun(f"attention by rows is not for {runtime.describe()['device']}; {INSTALL}")


def names(geometry: Geometry) -> tuple[str, str]:
    """Name the two kernels."""
    return f"attend_rows_{geometry.name}", f"join_rows_{geometry.name}"


def source(geometry: Geometry, lanes: int) -> str:
    """Write the whole program text for a geometry; a vector has `lanes` floats."""
    attend, join = names(geometry)
    defined = kinds(geometry) | {"ATTEND": attend, "JOIN": join, "SCALE": scale(geometry.k_dim), "LANES": lanes}
    defined |= {"K_DIM": geometry.k_dim, "V_DIM": geometry.v_dim}
    defined |= {"QUERY_HEADS": geometry.group, "QUERIES": geometry.queries, **form_rows.macros(geometry)}
    rows = "form_rows" if geometry.form else "plain_rows"
    return text(defined, "prelude_cl.h", "fast/lanes.cl", f"fast/{rows}.cl", "fast/attend_rows.cl")
