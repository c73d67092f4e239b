"""The adapters on devices: the caches over each runtime.

With `checks`, or KVCONFORM_GPU_CHECKS=1, guard bands are checked whenever rows are read.
"""

from __future__ import annotations

import os
from typing import Any

from kvadapters.gpu.adapter import Caches
from kvadapters.gpu.runtimes import cupy, opencl
from kvadapters.gpu.runtimes.cuda_cpu import CudaCPURuntime
from kvadapters.gpu.runtimes.fast import cuda_fast, opencl_fast, warp_attention
from kvadapters.gpu.runtimes.fast.row_attention import demand
from kvadapters.gpu.runtimes.opencl_devices import SELECT
from kvspec.contract import Cache
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, Config, valid


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


class Fast(Caches):
    """Claims outputs within the bound, not to the bit: attention, and the graphs of buckets."""

    def describe(self) -> dict[str, Any]:
        """What it is and claims."""
        found = super().describe()
        return {**found, "chapters": {**found["chapters"], "attention": "visible", "bucket": "visible"}}


class OpenCLFast(Fast):
    """`opencl-fast`: as `opencl`, but attention is fast."""

    def __init__(self, checks: bool | None = None) -> None:
        runtime = opencl_fast.shared(os.environ.get(SELECT, ""))
        demand(runtime)
        super().__init__("opencl-fast", runtime, checks)


class CuPyFast(Fast):
    """`cupy-fast`: as `cupy`, but attention over 16-bit rows is done by tensor cores."""

    def __init__(self, checks: bool | None = None) -> None:
        super().__init__("cupy-fast", cuda_fast.shared(), checks)


class CudaCPUFast(Fast):
    """`cuda-cpu-fast`: the kernels of `cupy-fast`, emulated on the CPU so that they can be judged. It takes only
    rows that the fast kernel takes, so that a run never judges the strict kernel."""

    def __init__(self, checks: bool | None = None) -> None:
        super().__init__("cuda-cpu-fast", cuda_fast.FastCudaCPURuntime(), checks)

    def describe(self) -> dict[str, Any]:
        """What it is and claims, and the rows that it takes."""
        dims = {"multiple": warp_attention.WIDTHS.step, "equal": False}
        return {**super().describe(), "dtypes": list(warp_attention.DTYPES), "limits": {"dims": dims}}

    def open(self, kind: str, config: Config) -> Cache:
        """Open a fresh cache. Raises Unsupported for rows that the fast kernel does not take."""
        if valid(config) and (
            config.k_dim % warp_attention.WIDTHS.step or config.v_dim % warp_attention.WIDTHS.step
        ):
            raise Unsupported(f"keys of width {config.k_dim} and values of width {config.v_dim}")
        if config.dtype in DTYPES and config.dtype not in warp_attention.DTYPES:
            raise Unsupported(f"no rows of {config.dtype}")
        return super().open(kind, config)
