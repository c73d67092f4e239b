"""The adapters on devices: the caches over each runtime.

With `checks`, or KVCONFORM_GPU_CHECKS=1, guard bands are checked whenever rows are read.
"""

from __future__ import annotations

import os
from typing import Any

from kvadapters.gpu.adapter import Caches
from kvadapters.gpu.runtimes import cupy, opencl, opencl_fast
from kvadapters.gpu.runtimes.cuda_cpu import CudaCPURuntime
from kvadapters.gpu.runtimes.opencl_devices import SELECT
from kvadapters.gpu.runtimes.row_attention import demand


class CudaCPU(Caches):
    """`cuda-cpu`: the CUDA kernels on the CPU."""

    def __init__(self, checks: bool | None = None) -> None:
        super().__init__("cuda-cpu", CudaCPURuntime(), checks)


class CuPy(Caches):
    """`cupy`: the CUDA kernels on an NVIDIA GPU."""

    def __init__(self, checks: bool | None = None) -> None:
        super().__init__("cupy", cupy.shared(), checks)


class OpenCL(Caches):
    """`opencl`: the OpenCL kernels on the device that was chosen."""

    def __init__(self, checks: bool | None = None) -> None:
        super().__init__("opencl", opencl.shared(os.environ.get(SELECT, "")), checks)


class OpenCLFast(Caches):
    """`opencl-fast`: as `opencl`, but claims outputs within the bound, not to the bit: attention, and the graphs of
    buckets."""

    def __init__(self, checks: bool | None = None) -> None:
        runtime = opencl_fast.shared(os.environ.get(SELECT, ""))
        demand(runtime)
        super().__init__("opencl-fast", runtime, checks)

    def describe(self) -> dict[str, Any]:
        """What it is and claims."""
        found = super().describe()
        return {**found, "chapters": {**found["chapters"], "attention": "visible", "bucket": "visible"}}
