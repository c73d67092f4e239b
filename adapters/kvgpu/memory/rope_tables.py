"""Cosines and sines on the device: the newest tables are kept, so that all layers of a step share one.

Only the lines of the wanted positions are uploaded, as ROPE-29 says. The host makes the lines of many positions
together, so that the next position of a decode costs only the copy of its line.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kvgpu.memory import rope_angles as angles
from kvgpu.runtime import Block, Runtime
from kvspec.geometry import Array
from kvspec.rope_scaling import Scaling

KEPT = 4
"""Tables that are kept: layers of one model may differ in base."""

SMALLEST = 4096
"""Bytes of a table's place at least."""

PIECE = 64
"""Positions whose lines are made together: they take as long as a few made one by one."""

FAR = 1 << 62
"""Positions from here on are not made in pieces."""


class Key(NamedTuple):
    """The table that is wanted."""

    positions: bytes
    dims: int
    base: int
    scaling: Scaling | None


class Tables:
    """The tables of one runtime, in places that are all as large as the largest has been: a step that is no longer
    than one before allocates nothing."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._free: list[Block] = []
        self._kept: OrderedDict[Key, Block] = OrderedDict()

    def table(self, positions: Array, dims: int, base: int, scaling: Scaling | None = None) -> Block:
        """Give the table of these positions, `[n, dims / 2, 2]` in f32: one that is there, or one uploaded now over
        the oldest. Raises MemoryError, and then keeps the tables that were there."""
        key = Key(positions.tobytes(), dims, base, scaling)
        if key not in self._kept:
            made = lines(positions, dims, base, scaling)
            self._grow(made.nbytes)
            block = self._free.pop() if self._free else self._kept.popitem(last=False)[1]
            self._runtime.upload(made, block)
            self._kept[key] = block
        self._kept.move_to_end(key)
        return self._kept[key]

    def _grow(self, nbytes: int) -> None:
        """Make larger places, if these are too small for this many bytes; their contents are lost."""
        old = [*self._free, *self._kept.values()]
        if old and old[0].nbytes >= nbytes:
            return
        size = max(SMALLEST, 1 << (nbytes - 1).bit_length())
        self._free = [self._runtime.allocate(size) for _ in range(KEPT)]
        self._kept.clear()
        for block in old:
            block.release()


def lines(positions: Array, dims: int, base: int, scaling: Scaling | None = None) -> Array:
    """Give cosines and sines as `rope_angles.table` does; for a few adjacent positions from pieces made before."""
    first, n = int(positions[0]), len(positions)
    if n > PIECE or not 0 <= first < FAR or (np.diff(positions) != 1).any():
        return angles.table(positions, dims, base, scaling)
    pieces = [_piece(i, dims, base, scaling) for i in range(first // PIECE, (first + n - 1) // PIECE + 1)]
    at = first % PIECE
    whole: Array = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    return whole[at : at + n]


@lru_cache(maxsize=64)
def _piece(number: int, dims: int, base: int, scaling: Scaling | None) -> Array:
    return angles.table(np.arange(number * PIECE, (number + 1) * PIECE, dtype=np.int64), dims, base, scaling)
