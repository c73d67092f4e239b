"""Cosines and sines on the device: the newest tables are kept, so that all layers of a step share one."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from kvadapters.gpu.memory import rope_angles as angles
from kvadapters.gpu.runtime import Block, Runtime
from kvspec.geometry import Array

KEPT = 4
"""Tables that are kept: layers of one model may differ in base."""

SMALLEST = 4096
"""Bytes of a table's place at least."""


class Key(NamedTuple):
    """What a table is for."""

    positions: bytes
    dims: int
    base: int


class Tables:
    """The tables of one runtime, in places that are all as large as the largest has been: a step that is no longer
    than one before allocates nothing."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._free: list[Block] = []
        self._kept: OrderedDict[Key, Block] = OrderedDict()

    def table(self, positions: Array, dims: int, base: int) -> Block:
        """That of these positions, `[n, dims / 2, 2]` in f32: one that is there, or one uploaded now over the
        oldest. Raises MemoryError, and has then kept what was there."""
        key = Key(positions.tobytes(), dims, base)
        if key not in self._kept:
            made = angles.table(positions, dims, base)
            self._grow(made.nbytes)
            block = self._free.pop() if self._free else self._kept.popitem(last=False)[1]
            self._runtime.upload(made, block)
            self._kept[key] = block
        self._kept.move_to_end(key)
        return self._kept[key]

    def _grow(self, nbytes: int) -> None:
        """Larger places, if these are too small for this many bytes; their contents are lost."""
        old = [*self._free, *self._kept.values()]
        if old and old[0].nbytes >= nbytes:
            return
        size = max(SMALLEST, 1 << (nbytes - 1).bit_length())
        self._free = [self._runtime.allocate(size) for _ in range(KEPT)]
        self._kept.clear()
        for block in old:
            block.release()
