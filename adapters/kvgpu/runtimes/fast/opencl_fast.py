"""The runtime of `opencl-fast`: OpenCL on a CPU device, attention by the row-shaped kernel where it applies. Single
rows are written by the host."""

from __future__ import annotations

from ctypes import c_uint8
from functools import cache, partial

import numpy as np

from kvgpu.runtime import Block
from kvgpu.runtimes.fast import form_rows
from kvgpu.runtimes.fast.attention import Geometry
from kvgpu.runtimes.fast.row_attention import RowAttention
from kvgpu.runtimes.fast.strict_launches import Asked, InPlaceOfStrict, StrictLaunches
from kvgpu.runtimes.opencl import OpenCLRuntime
from kvspec.geometry import Array, Config

TOGETHER = 4
"""Queries that read a row together where an attend has several: a block of a speculative decode, a prefill."""

TRIED = 64
"""Bytes of the block by which a runtime finds out whether the host reaches what its device has."""


class FastRuntime(InPlaceOfStrict, OpenCLRuntime):
    """Strict launches go to a row-shaped kernel, unless masks come as arrays. The host reaches the device's memory
    on PoCL: there a buffer is memory of the host, at one address as long as it exists."""

    clock = f"{OpenCLRuntime.clock}; what the host would write itself is launched meanwhile"

    def __init__(self, wanted: str | None = None) -> None:
        super().__init__(wanted)
        self._strict = StrictLaunches(self, _geometry, partial(RowAttention, self))
        self._reaches = self._queues.idle() and self._tried()

    def reads_form(self, config: Config) -> bool:
        """Tell whether attention reads rows in the form of this config where they lie."""
        return form_rows.readable(config)

    def resting(self) -> bool:
        """Tell whether the host may write now: it reaches the memory, and nothing runs, is captured or is timed."""
        free = self._reaches and self._events is None and not self._recorder.capturing
        return free and (self._queues.newest is None or self._queues.idle())

    def reach(self, block: Block) -> Array:
        """Give the bytes of a block where they lie, `[nbytes]`, u8, while it rests."""
        address = self._mapped(self._queues.waiting(), block.handle, block.nbytes, lambda _: None)
        return np.ctypeslib.as_array((c_uint8 * block.nbytes).from_address(address))

    def _tried(self) -> bool:
        """Tell whether the device sees what the host wrote to a buffer after it was mapped."""
        with self.meter.paused():
            block, wanted = self.allocate(TRIED), np.arange(TRIED, dtype=np.uint8)
            self.upload(wanted[::-1].copy(), block)
            self.reach(block)[:] = wanted
            return bool((self.download(block, 0, TRIED)[0] == wanted).all())


def _geometry(lie: str, kind: str, asked: Asked) -> Geometry:
    queries, (dtype, _, form) = TOGETHER if asked.each > 1 else 1, kind.partition(" ")
    return Geometry(dtype, asked.k_dim, asked.v_dim, asked.heads, asked.kv_heads, lie, queries, form)


@cache
def shared(wanted: str) -> FastRuntime:
    """Give the process's runtime for each choice of device."""
    return FastRuntime(wanted)
