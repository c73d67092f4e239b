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
from kvspec.contract import Rope
from kvspec.geometry import Array
from kvspec.rope.scaling import Scaling
from kvspec.rope.sections import Sections

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
    sections: Sections | None


class Tables:
    """The tables of one runtime, in places that are all as large as the largest has been: a step that is no longer
    than one before allocates nothing."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._free: list[Block] = []
        self._kept: OrderedDict[Key, Block] = OrderedDict()

    def table(self, positions: Array, dims: int, rope: Rope) -> Block:
        """Give the table of these positions, `[n]`, or `[3, n]` with sections: `[n, dims / 2, 2]` in f32, one that
        is there, or one uploaded now over the oldest. Raises MemoryError, and then keeps the tables that were
        there."""
        key = Key(positions.tobytes(), dims, rope.base, rope.scaling, rope.sections)
        if key not in self._kept:
            made = _lines(positions, dims, rope)
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


def _lines(positions: Array, dims: int, rope: Rope) -> Array:
    """Give cosines and sines of rows at one position each, or at three."""
    if rope.sections is None:
        return lines(positions, dims, rope.base, rope.scaling)
    three = np.stack([lines(each, dims, rope.base, rope.scaling) for each in positions])
    return np.ascontiguousarray(three[axes(rope.sections, dims // 2), :, np.arange(dims // 2)].swapaxes(0, 1))


def axes(sections: Sections, pairs: int) -> Array:
    """Tell which of a row's three positions turns each pair: 0 the time, 1 the height, 2 the width."""
    which = np.zeros(pairs, np.int64)
    if sections.interleaved:
        which[1 : 3 * sections.height : 3], which[2 : 3 * sections.width : 3] = 1, 2
    else:
        which[sections.time :], which[sections.time + sections.height :] = 1, 2
    return which


@lru_cache(maxsize=64)
def _piece(number: int, dims: int, base: int, scaling: Scaling | None) -> Array:
    return angles.table(np.arange(number * PIECE, (number + 1) * PIECE, dtype=np.int64), dims, base, scaling)
