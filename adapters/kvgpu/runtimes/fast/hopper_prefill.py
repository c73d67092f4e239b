"""Attention of many queries by what only compute capability 9.0 has: `kernels/fast/prefill_hopper.cu`.

It never ran on a GPU, only under emulation. So `cupy-fast` takes it only where KVCONFORM_HOPPER=1 asks for it. In a
geometry for this kernel `queries` is 128.
"""

from __future__ import annotations

from kvgpu.runtime import Block, Work
from kvgpu.runtimes.fast import warp_attention
from kvgpu.runtimes.fast.attention import Call, Geometry
from kvgpu.runtimes.fast.warp_attention import LANES, WarpDevice
from kvgpu.runtimes.fast.warp_prefill import WarpPrefill
from kvgpu.runtimes.tensor_map import Matrix, TensorMap

QUERIES = 128
"""Columns of a block, and the `queries` of every geometry for this kernel."""

WIDTHS = range(64, 129, 64)
"""The widths of rows that it takes: lines of a box have 64 elements. Wider ones leave too few registers."""

WARP_GROUPS, WARPS = 2, 12
"""Groups of four warps that compute, of 64 columns each; warps of a block: a warp of one more group brings rows."""

STAGE = 128
"""Positions of a stage."""

PARTS = {"f16": 2, "bf16": 3}
"""The dtypes of rows that it takes, and the parts in which it takes queries for each."""

OPTION = "KVCONFORM_HOPPER"
"""The environment variable that asks for it on a GPU."""

BEFORE = "fast/hopper_cuda.h", "fast/hopper_rows.cu"
"""The texts that stand before a kernel for compute capability 9.0, behind those of every kernel."""

BARRIERS = 32
"""Bytes of its barriers."""


class HopperPrefill(WarpPrefill):
    """As `WarpPrefill`. A launch has maps of keys and values, of which the GPU copies boxes by itself."""

    kernel = "hopper_prefill"

    def _program(self, name: str) -> str:
        return source(self.geometry, name, self.workers)

    @property
    def workers(self) -> int:
        """Give the number of multiprocessors: each has registers for one block."""
        return self.device.multiprocessors

    def _shared(self) -> int:
        return shared(self.geometry)

    def _columns(self) -> int:
        return QUERIES

    def _work(self, tasks: int) -> Work:
        return Work(LANES, tasks, WARPS)

    def _start(self, call: Call, work: Work, *args: Block | int) -> None:
        self.device.launch(self._attend, work, *args, *self._maps(call))

    def _maps(self, call: Call) -> tuple[TensorMap, ...]:
        place, geometry = call.rows.place, self.geometry
        keys = mapped(self.device, place.keys, place.keys_at, geometry.k_dim)
        return keys, mapped(self.device, place.values, place.values_at, geometry.v_dim)


def mapped(device: WarpDevice, block: Block, at: int, width: int) -> TensorMap:
    """Make the map of rows that begin at a byte of a block."""
    return device.mapped(Matrix(block, at, width))


def taken(geometry: Geometry) -> bool:
    """Tell whether the kernel takes rows of this geometry."""
    fits = geometry.k_dim in WIDTHS and geometry.v_dim in WIDTHS
    return fits and geometry.dtype in PARTS and geometry.lie != "rows"


def in_flight(geometry: Geometry) -> int:
    """Count the bytes that are under way in a block while it computes: a stage."""
    return STAGE * (geometry.k_dim + geometry.v_dim) * 2


def shared(geometry: Geometry) -> int:
    """Count the bytes of shared memory: two stages, the queries in parts, and barriers."""
    queries = QUERIES * geometry.k_dim * 2 * PARTS[geometry.dtype]
    return 2 * in_flight(geometry) + queries + BARRIERS


def source(geometry: Geometry, name: str, workers: int) -> str:
    """Write the whole program text for a geometry; there are parts for as many splits as `workers`."""
    sizes = {"WARPS": WARPS, "WARP_GROUPS": WARP_GROUPS, "STAGE": STAGE}
    heads = {"QUERIES": QUERIES, "PER_PASS": geometry.group, "COLUMNS": 16, "PREFILL": 1}
    defined = sizes | heads | {"BLOCK_COLUMNS": QUERIES}
    return warp_attention.program(geometry, name, workers, defined, *BEFORE, "fast/prefill_hopper.cu")
