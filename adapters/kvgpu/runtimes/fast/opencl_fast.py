"""The runtime of `opencl-fast`: OpenCL on a CPU device, attention by the row-shaped kernel where it applies."""

from __future__ import annotations

from functools import cache, partial

from kvgpu.runtimes.fast import form_rows
from kvgpu.runtimes.fast.attention import Geometry
from kvgpu.runtimes.fast.row_attention import RowAttention
from kvgpu.runtimes.fast.strict_launches import Asked, InPlaceOfStrict, StrictLaunches
from kvgpu.runtimes.opencl import OpenCLRuntime
from kvspec.geometry import Config

TOGETHER = 4
"""Queries that read a row together where an attend has several: a block of a speculative decode, a prefill."""


class FastRuntime(InPlaceOfStrict, OpenCLRuntime):
    """Strict launches go to a row-shaped kernel, unless masks come as arrays."""

    def __init__(self, wanted: str | None = None) -> None:
        super().__init__(wanted)
        self._strict = StrictLaunches(self, _geometry, partial(RowAttention, self))

    def reads_form(self, config: Config) -> bool:
        """Tell whether attention reads rows in the form of this config where they lie."""
        return form_rows.readable(config)


def _geometry(lie: str, kind: str, asked: Asked) -> Geometry:
    queries, (dtype, _, form) = TOGETHER if asked.each > 1 else 1, kind.partition(" ")
    return Geometry(dtype, asked.k_dim, asked.v_dim, asked.heads, asked.kv_heads, lie, queries, form)


@cache
def shared(wanted: str) -> FastRuntime:
    """Give the process's runtime for each choice of device."""
    return FastRuntime(wanted)
