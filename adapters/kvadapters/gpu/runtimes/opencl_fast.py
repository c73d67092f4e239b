"""The runtime of `opencl-fast`: OpenCL on a CPU device, attention by the row-shaped kernel where it applies.

It applies wherever rows lie, seen through causal masks and windows. Masks given as arrays go to the strict kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

from kvadapters.gpu.caches.attention import Pages, Positions, Runs
from kvadapters.gpu.caches.queries import FLOAT
from kvadapters.gpu.memory.device_arrays import DeviceRows
from kvadapters.gpu.memory.layout import Place
from kvadapters.gpu.runtime import Block, Work
from kvadapters.gpu.runtimes.capture import Replayable
from kvadapters.gpu.runtimes.opencl import OpenCLRuntime
from kvadapters.gpu.runtimes.row_attention import RowAttention
from kvspec.geometry import DTYPES

ATTEND, JOIN = re.compile(r"attend_(runs|pages)_(\w+)"), "attend_join"
"""The strict kernels: by how rows lie, and their dtype; and the one that joins parts into outputs."""

TOGETHER = 4
"""Queries that read a row together where an attend has several: a block of a speculative decode, a prefill."""


class Geometry(NamedTuple):
    """What a `RowAttention` is compiled for."""

    dtype: str
    k_dim: int
    v_dim: int
    heads: int
    kv_heads: int
    lie: str
    queries: int


class Asked(NamedTuple):
    """The arguments of a strict kernel, in its order: see `kernels/attend.inc`."""

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
    lying: tuple[int, ...]

    def geometry(self, lie: str, dtype: str) -> Geometry:
        """Give the geometry to compile for."""
        queries = TOGETHER if self.each > 1 else 1
        return Geometry(dtype, self.k_dim, self.v_dim, self.heads, self.kv_heads, lie, queries)

    def rows(self, lie: str, size: int) -> Runs | Pages:
        """Give the places of the rows, for elements of this many bytes."""
        place = Place(self.keys, self.values, self.keys_at * size, self.values_at * size, self.slots)
        if lie == "pages":
            page, at, stride = self.lying
            return Pages(place, page, self.tables, at, stride)
        return Runs(place, *self.lying)

    def most(self, lie: str) -> int | None:
        """Give the number of positions there may be, if their end is on the device."""
        if not self.reads:
            return None
        return self.slots * max(1, self.lying[2]) if lie == "pages" else self.slots

    def positions(self) -> Positions:
        """Give the positions of the queries."""
        lengths = self.lengths if self.reads else None
        return Positions(self.first, self.given, lengths, self.lengths_at, self.lengths_stride)


def asked(*args: Any) -> Asked:
    """Take the arguments of a strict kernel apart: the last ones say where rows lie."""
    named = len(Asked._fields) - 1
    return Asked._make((*args[:named], args[named:]))


class FastRuntime(OpenCLRuntime):
    """Caches launch a strict kernel, then one that joins its parts. If the fast kernel applies, the first launch is
    only noted, and the fast kernel runs instead of the second, which knows where outputs go."""

    def __init__(self, wanted: str | None = None) -> None:
        super().__init__(wanted)
        self._made: dict[Geometry, RowAttention] = {}
        self._noted: tuple[str, str, Asked] | None = None
        self._capturing = False

    def launch(self, kernel: str, work: Work, *args: Block | int) -> None:
        """Start a kernel, or the fast one in its place."""
        strict = ATTEND.fullmatch(kernel)
        if strict and self._noting(strict[1], strict[2], asked(*args)):
            return
        if kernel == JOIN and self._noted is not None:
            self._instead(*cast(Any, args))
            return
        super().launch(kernel, work, *args)

    def _noting(self, lie: str, dtype: str, asked: Asked) -> bool:
        """Note the arguments if the fast kernel applies, and tell whether it does. Capturing cannot allocate, so a
        geometry that was not compiled before is left to the strict kernel."""
        made = asked.geometry(lie, dtype) in self._made
        applies = asked.masks == 0 and (made or not self._capturing)
        self._noted = (lie, dtype, asked) if applies else None
        return applies

    def _instead(self, parts: Block, out: Block, units: int, splits: int, width: int, at: int) -> None:
        """Attend with the noted arguments; outputs go from the element `at` on."""
        assert self._noted is not None
        (lie, dtype, asked), self._noted = self._noted, None
        shape = asked.entries, asked.heads, asked.each
        queries = DeviceRows(self, asked.queries, (*shape, asked.k_dim), FLOAT, asked.queries_at * FLOAT.itemsize)
        target = DeviceRows(self, out, (*shape, width), FLOAT, at * FLOAT.itemsize)
        rows, most = asked.rows(lie, DTYPES[dtype].itemsize), asked.most(lie)
        attention = self._attention(asked.geometry(lie, dtype))
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
