"""Caches on devices that tests share: one on each runtime, guard bands checked at every read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from kvgpu.adapter import Caches
from kvgpu.adapters import CudaCPU, OpenCL
from kvgpu.runtime import Block
from kvgpu.runtimes import launch_shapes
from kvgpu.runtimes.opencl import OpenCLRuntime

RUNTIMES = ("opencl", "cuda-cpu")
ON = RUNTIMES[0]
"""Where `adapter` runs; tests that use the fixture `each_runtime` run on all."""


def adapter(wide: bool = False) -> Caches:
    """The caches on OpenCL, or on the runtime of `each_runtime`. `wide` launches as on a GPU."""
    return _adapter(ON, wide)


@cache
def _adapter(on: str, wide: bool) -> Caches:
    if on == "cuda-cpu":
        return CudaCPU(checks=True)
    return (
        Caches("opencl wide", OpenCLRuntime(shape=launch_shapes.gpu), checks=True) if wide else OpenCL(checks=True)
    )


ADAPTERS: dict[str, Callable[[], Caches]] = {
    "opencl": adapter,
    "opencl wide": lambda: adapter(wide=True),
    "cuda-cpu": lambda: _adapter("cuda-cpu", False),
}
NAMES = ["opencl", pytest.param("opencl wide", marks=pytest.mark.slow), "cuda-cpu"]
"""Their names. A CPU's OpenCL compiles a kernel again for each size of a group, so only `nox -s slow` launches all
as on a GPU there; cuda-cpu always does."""


class Scarce:
    """A runtime on which the allocation after `left` more fails; everything else is as on the real one."""

    def __init__(self, real: Any) -> None:
        self.real, self.left = real, 1 << 30

    def allocate(self, nbytes: int) -> Block:
        self.left -= 1
        if self.left == -1:
            raise MemoryError("none left")
        return self.real.allocate(nbytes)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)
