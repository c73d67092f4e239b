"""The adapters on devices: the caches over each runtime.

With `checks`, or KVCONFORM_GPU_CHECKS=1, guard bands are checked whenever rows are read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from kvgpu.adapter import Caches
from kvgpu.caches.page import Pages
from kvgpu.captured.batch_step import CapturedBatchStep
from kvgpu.captured.page_batch import PageBatch
from kvgpu.runtimes import opencl
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvgpu.runtimes.fast import cuda_fast, opencl_fast, warp_attention
from kvgpu.runtimes.fast.row_attention import demand
from kvgpu.runtimes.nvidia import cupy
from kvgpu.runtimes.opencl_devices import SELECT
from kvspec.contract import Cache
from kvspec.errors import Unsupported
from kvspec.geometry import Config, valid
from kvspec.operations.table import CHAPTER_OF, TAKES_QUERIES


class CUDA(Caches):
    """Caches on a runtime that compiles the kernels in CUDA."""

    def capture_pages(self, cache: Pages, sequences: Sequence[int], heads: int, max_len: int) -> CapturedBatchStep:
        """Capture a step of a batch of sequences of a paged cache: a row and a query for each. The batch shares the
        full pages that they have now. Each sequence of it may have `max_len` rows."""
        batch = PageBatch(cache, 1, len(sequences), max_len)
        for place, sequence in enumerate(sequences):
            batch.admit(place, sequence)
        return CapturedBatchStep(batch, heads)


class CudaCPU(CUDA):
    """`cuda-cpu`: the common kernels in CUDA, on the CPU. `cuda-cpu-fast` runs the copies for GPUs."""

    def __init__(self, checks: bool | None = None) -> None:
        super().__init__("cuda-cpu", CudaCPURuntime(), checks)


class CuPy(CUDA):
    """`cupy`: the CUDA kernels on an NVIDIA GPU."""

    def __init__(self, checks: bool | None = None) -> None:
        super().__init__("cupy", cupy.shared(), checks)


class OpenCL(Caches):
    """`opencl`: the OpenCL kernels on the device that was chosen."""

    def __init__(self, checks: bool | None = None) -> None:
        super().__init__("opencl", opencl.shared(os.environ.get(SELECT, "")), checks)


BOUNDED = frozenset(CHAPTER_OF[operation] for operation in TAKES_QUERIES)
"""Chapters with outputs: one more that has queries is among them."""


class Fast(Caches):
    """Claims outputs within the bound, not to the bit: attention, blocks that ask, and the graphs of buckets."""

    def describe(self) -> dict[str, Any]:
        """What it is and claims."""
        found = super().describe()
        return {**found, "chapters": {**found["chapters"], **dict.fromkeys(BOUNDED, "visible")}}


class OpenCLFast(Fast):
    """`opencl-fast`: as `opencl`, but attention is fast."""

    def __init__(self, checks: bool | None = None) -> None:
        runtime = opencl_fast.shared(os.environ.get(SELECT, ""))
        demand(runtime)
        super().__init__("opencl-fast", runtime, checks)


class CuPyFast(Fast, CUDA):
    """`cupy-fast`: as `cupy`, but attention is done by tensor cores, over rows of most widths."""

    def __init__(self, checks: bool | None = None) -> None:
        super().__init__("cupy-fast", cuda_fast.shared(), checks)


class CudaCPUFast(Fast, CUDA):
    """`cuda-cpu-fast`: the kernels of `cupy-fast`, emulated on the CPU so that they can be judged. It takes only
    rows that the fast kernel takes, so that a run never judges the strict kernel."""

    def __init__(self, checks: bool | None = None) -> None:
        super().__init__("cuda-cpu-fast", cuda_fast.FastCudaCPURuntime(), checks)

    def describe(self) -> dict[str, Any]:
        """What it is and claims, and the widths that it takes."""
        dims = {"multiple": warp_attention.WIDTHS.step, "equal": False}
        return {**super().describe(), "limits": {"dims": dims}}

    def open(self, kind: str, config: Config) -> Cache:
        """Open a fresh cache. Raises Unsupported for rows that the fast kernel does not take."""
        if valid(config) and (
            config.k_dim % warp_attention.WIDTHS.step or config.v_dim % warp_attention.WIDTHS.step
        ):
            raise Unsupported(f"keys of width {config.k_dim} and values of width {config.v_dim}")
        return super().open(kind, config)
