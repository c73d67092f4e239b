"""The runtimes of `cupy-fast` and `cuda-cpu-fast`: the CUDA text, attention on tensor cores where it applies."""

from __future__ import annotations

from functools import cache

from kvadapters.gpu.runtimes import warp_attention
from kvadapters.gpu.runtimes.cuda_cpu import CudaCPURuntime
from kvadapters.gpu.runtimes.cupy import CuPyRuntime
from kvadapters.gpu.runtimes.fast_attention import Geometry
from kvadapters.gpu.runtimes.strict_launches import Asked, InPlaceOfStrict, StrictLaunches
from kvadapters.gpu.runtimes.warp_attention import TILE, WarpAttention

BLOCKS_AT_ONCE = 2
"""Blocks that a multiprocessor has room for."""

MOST_POSITIONS = 1 << 30
"""The kernel counts positions in 32 bits."""


class FastCuPyRuntime(InPlaceOfStrict, CuPyRuntime):
    """As `CuPyRuntime`; strict launches go to the tensor cores where rows are of a geometry for them."""

    def __init__(self) -> None:
        super().__init__()
        device = self._cuda.getDeviceProperties(self._cuda.getDevice())
        self.workers = BLOCKS_AT_ONCE * int(device["multiProcessorCount"])
        self._strict = StrictLaunches(self, geometry, lambda geometry: WarpAttention(self, geometry))


class FastCudaCPURuntime(InPlaceOfStrict, CudaCPURuntime):
    """The same on the CPU, where tensor cores, matrices in shared memory and asynchronous copies are emulated."""

    workers = 8

    def __init__(self) -> None:
        super().__init__()
        self._strict = StrictLaunches(self, geometry, lambda geometry: WarpAttention(self, geometry))


def geometry(lie: str, dtype: str, asked: Asked) -> Geometry | None:
    """Choose the geometry; None where rows are for the strict kernel."""
    lies = "rows" if lie == "pages" and asked.slots % TILE else lie
    one = Geometry(dtype, asked.k_dim, asked.v_dim, asked.heads, asked.kv_heads, lies, 1)
    most = asked.most(lie) or asked.given
    if not warp_attention.taken(one) or most > MOST_POSITIONS:
        return None
    return one._replace(queries=warp_attention.together(one) if asked.each > 1 else 1)


@cache
def shared() -> FastCuPyRuntime:
    """Give the process's only runtime."""
    return FastCuPyRuntime()
