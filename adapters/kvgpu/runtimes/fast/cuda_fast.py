"""The runtimes of `cupy-fast` and `cuda-cpu-fast`: the CUDA text, attention on tensor cores where it applies."""

from __future__ import annotations

import os
from functools import cache, partial

from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvgpu.runtimes.fast import hopper_latent, hopper_prefill, warp_kernels
from kvgpu.runtimes.fast.attention import Geometry
from kvgpu.runtimes.fast.strict_launches import Asked, InPlaceOfStrict, StrictLaunches
from kvgpu.runtimes.fast.warp_attention import MOST_BYTES, TILE
from kvgpu.runtimes.nvidia.cupy import CuPyRuntime
from kvspec.errors import CannotRun
from kvspec.geometry import Config

MOST_AT_ONCE = 2
"""Most blocks of a multiprocessor, by the registers that a kernel may take."""

OF_A_BLOCK = MOST_BYTES + (2 << 10)
"""Bytes of shared memory that a block takes at most: its rings, what it declares, and 1 KiB of the driver's."""

LEAST = 80
"""Ten times the compute capability of the first GPUs with the products and the copies that it uses."""

HOPPER = "90"
"""The compute capability of the GPUs that have what `hopper_prefill` uses."""

MOST_POSITIONS = 1 << 30
"""The kernel counts positions in 32 bits."""


def at_once(shared: int) -> int:
    """Give the number of blocks that a multiprocessor with so many bytes of shared memory has room for."""
    return max(1, min(MOST_AT_ONCE, shared // OF_A_BLOCK))


class ReadingLatentRows:
    """Reads latent rows where they lie, with the kernels for compute capability 9.0."""

    hopper: bool

    def reads_form(self, config: Config) -> bool:
        """Tell whether attention reads rows in the form of this config where they lie."""
        return self.hopper and hopper_latent.readable(config)


class FastCuPyRuntime(ReadingLatentRows, InPlaceOfStrict, CuPyRuntime):
    """As `CuPyRuntime`; strict launches go to the tensor cores where rows are of a geometry for them. Raises
    CannotRun on a GPU that lacks what they need."""

    def __init__(self) -> None:
        super().__init__()
        if int(self._capability) < LEAST:
            has = f"{self._capability[:-1]}.{self._capability[-1]}"
            raise CannotRun(f"cupy-fast needs a GPU of compute capability 8.0; this one has {has}: take cupy")
        device = self._cuda.getDeviceProperties(self._cuda.getDevice())
        self.multiprocessors = int(device["multiProcessorCount"])
        self.workers = at_once(int(device["sharedMemPerMultiprocessor"])) * self.multiprocessors
        self.hopper = self._capability == HOPPER and os.environ.get(hopper_prefill.OPTION) == "1"
        choose = partial(geometry, hopper=self.hopper)
        self._strict = StrictLaunches(self, choose, partial(warp_kernels.made, self))


class FastCudaCPURuntime(ReadingLatentRows, InPlaceOfStrict, CudaCPURuntime):
    """The same on the CPU, where tensor cores, matrices in shared memory and asynchronous copies are emulated."""

    workers, multiprocessors, beside = 8, 4, 3
    """The kernel for many queries takes more than three, so that the short blocks of the suite judge it."""

    def __init__(self, sanitizer: str = "") -> None:
        super().__init__(sanitizer=sanitizer, device="gpu")
        self.hopper = os.environ.get(hopper_prefill.OPTION) == "1"
        choose = partial(geometry, beside=self.beside, hopper=self.hopper)
        self._strict = StrictLaunches(self, choose, partial(warp_kernels.made, self))


def geometry(lie: str, kind: str, asked: Asked, beside: int | None = None, hopper: bool = False) -> Geometry | None:
    """Choose the geometry; None where rows are for the strict kernel. For the others see `warp_kernels.chosen`."""
    lies, (dtype, _, form) = "rows" if lie == "pages" and asked.slots % TILE else lie, kind.partition(" ")
    one = Geometry(dtype, asked.k_dim, asked.v_dim, asked.heads, asked.kv_heads, lies, 1, form)
    most = asked.most(lie) or asked.given
    if not warp_kernels.taken(one) or most > MOST_POSITIONS:
        return None
    return warp_kernels.chosen(one, asked.each, beside, hopper)


@cache
def shared() -> FastCuPyRuntime:
    """Give the process's only runtime."""
    return FastCuPyRuntime()
