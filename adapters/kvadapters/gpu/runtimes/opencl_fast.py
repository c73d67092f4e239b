"""The runtime of `opencl-fast`: OpenCL on a CPU device, attention by the row-shaped kernel where it applies.

It applies to rows in runs (growing caches, rings in place, stores, batches, buckets) seen through causal masks and
windows. The strict kernels handle pages, and masks given as arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

from kvadapters.gpu.caches.attention import Positions, Runs
from kvadapters.gpu.caches.queries import FLOAT
from kvadapters.gpu.memory.device_arrays import DeviceRows
from kvadapters.gpu.memory.layout import Place
from kvadapters.gpu.runtime import Block, Work
from kvadapters.gpu.runtimes.capture import Replayable
from kvadapters.gpu.runtimes.opencl import OpenCLRuntime
from kvadapters.gpu.runtimes.row_attention import RowAttention
from kvspec.geometry import DTYPES

RUNS, JOIN = "attend_runs_", "attend_join"
"""The strict kernels: over rows in runs, by dtype; and the one that joins parts into outputs."""


class Geometry(NamedTuple):
    """The geometry that a `RowAttention` is compiled for."""

    dtype: str
    k_dim: int
    v_dim: int
    heads: int
    kv_heads: int


class Asked(NamedTuple):
    """The arguments of the strict kernel over runs, in its order: see `kernels/attend.inc`."""

    keys: Block
    values: Block
    queries: Block
    added: Block
    lengths: Block
    tables: Block
    parts: Block
    entries: int
    heads: int
    kv_heads: int
    each: int
    splits: int
    k_dim: int
    v_dim: int
    scale: int
    queries_at: int
    keys_at: int
    values_at: int
    slots: int
    first: int
    given: int
    reads: int
    lengths_at: int
    lengths_stride: int
    causal: int
    window: int
    masks: int
    apart: int
    start: int
    before: int
    then: int

    def geometry(self, dtype: str) -> Geometry:
        """Give the geometry to compile for."""
        return Geometry(dtype, self.k_dim, self.v_dim, self.heads, self.kv_heads)

    def rows(self, size: int) -> Runs:
        """Give the places of the rows, for elements of this many bytes."""
        place = Place(self.keys, self.values, self.keys_at * size, self.values_at * size, self.slots)
        return Runs(place, self.apart, self.start, self.before, self.then)

    def positions(self) -> Positions:
        """Give the positions of the queries."""
        lengths = self.lengths if self.reads else None
        return Positions(self.first, self.given, lengths, self.lengths_at, self.lengths_stride)


class FastRuntime(OpenCLRuntime):
    """Caches launch a strict kernel, then one that joins its parts. If the fast kernel applies, the first launch is
    only noted, and the fast kernel runs instead of the second, which knows where outputs go."""

    def __init__(self, wanted: str | None = None) -> None:
        super().__init__(wanted)
        self._made: dict[Geometry, RowAttention] = {}
        self._noted: tuple[str, Asked] | None = None
        self._capturing = False

    def launch(self, kernel: str, work: Work, *args: Block | int) -> None:
        """Start a kernel, or the fast one in its place."""
        if kernel.startswith(RUNS) and self._noting(kernel.removeprefix(RUNS), Asked(*cast(Any, args))):
            return
        if kernel == JOIN and self._noted is not None:
            self._instead(*cast(Any, args))
            return
        super().launch(kernel, work, *args)

    def _noting(self, dtype: str, asked: Asked) -> bool:
        """Note the arguments if the fast kernel applies, and tell whether it does. Capturing cannot allocate, so a
        geometry that was not compiled before is left to the strict kernel."""
        made = asked.geometry(dtype) in self._made
        applies = asked.masks == 0 and (made or not self._capturing)
        self._noted = (dtype, asked) if applies else None
        return applies

    def _instead(self, parts: Block, out: Block, units: int, splits: int, width: int, at: int) -> None:
        """Attend with the noted arguments; outputs go from the element `at` on."""
        assert self._noted is not None
        (dtype, asked), self._noted = self._noted, None
        shape = asked.entries, asked.heads, asked.each
        queries = DeviceRows(self, asked.queries, (*shape, asked.k_dim), FLOAT, asked.queries_at * FLOAT.itemsize)
        target = DeviceRows(self, out, (*shape, width), FLOAT, at * FLOAT.itemsize)
        rows, most = asked.rows(DTYPES[dtype].itemsize), asked.slots if asked.reads else None
        attention = self._attention(asked.geometry(dtype))
        attention.attend(queries, rows, asked.positions(), target, bool(asked.causal), asked.window, most)

    def _attention(self, geometry: Geometry) -> RowAttention:
        if geometry not in self._made:
            self._made[geometry] = RowAttention(self, *geometry)
        return self._made[geometry]

    def capture(self, work: Callable[[], None]) -> Replayable:
        """Note what `work` launches; a replay enqueues it kernel by kernel."""
        self._capturing = True
        try:
            return super().capture(work)
        finally:
            self._capturing = False


@cache
def shared(wanted: str) -> FastRuntime:
    """Give the process's runtime for each choice of device."""
    return FastRuntime(wanted)
