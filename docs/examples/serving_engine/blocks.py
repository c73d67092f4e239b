"""Memory for rows, in blocks of a fixed size: who has which block, and what lies in it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Slots = NDArray[np.intp]

NULL = 0
"""The block that stands in a table where no block is needed any more. Nothing is written to it or read from it."""
ELSEWHERE = -1
"""What stands in a table that is found where only the host has the block, until it is loaded."""
GROUP = 32
"""Elements of a row in int8 that share a scale."""


@dataclass(frozen=True)
class Group:
    """Layers whose queries see the same: the newest `window` rows, or all. They share a block table."""

    window: int | None
    layers: tuple[int, ...]

    def first(self, at: int) -> int:
        """Give the first row that a query at position `at`, or a later one, sees."""
        return 0 if self.window is None else max(0, at - self.window + 1)


class Pool:
    """Counts for each block how many tables have it. A block that none has is free, and keeps its rows until it is
    taken for others: the least recently used first."""

    def __init__(self, blocks: int) -> None:
        self.counts = [0] * (blocks + 1)
        self.free = OrderedDict.fromkeys(range(1, blocks + 1))

    def take(self) -> int:
        """Give a free block to one table."""
        block, _ = self.free.popitem(last=False)
        self.counts[block] = 1
        return block

    def share(self, block: int) -> None:
        """Give a block to one more table."""
        if block in (NULL, ELSEWHERE):
            return
        self.free.pop(block, None)
        self.counts[block] += 1

    def give_back(self, block: int, useless: bool) -> None:
        """Take a block out of one table. A free block is taken last, or first if its rows are `useless`."""
        if block == NULL:
            return
        self.counts[block] -= 1
        if self.counts[block] == 0:
            self.free[block] = None
            self.free.move_to_end(block, last=not useless)


class Rows:
    """Keys and values of all blocks, float32. The layers of a group have one place each in a block; groups use the
    same blocks, each block by one of them at a time. A slot is a block's number times its size, and what is behind
    it. Arrays are [places, slots, elements of a row]."""

    def __init__(self, groups: Sequence[Group], blocks: int, size: int, elements: int) -> None:
        self.groups, self.size = groups, size
        shape = max(len(group.layers) for group in groups), (blocks + 1) * size, elements
        self.make(shape)

    def make(self, shape: tuple[int, int, int]) -> None:
        """Make the arrays."""
        self.keys, self.values = np.zeros(shape, np.float32), np.zeros(shape, np.float32)

    @property
    def arrays(self) -> list[NDArray[np.generic]]:
        """All that is kept of rows."""
        return [self.keys, self.values]

    def write(self, place: int, slots: Slots, keys: Floats, values: Floats) -> None:
        """Write rows, [n, elements]."""
        self.keys[place, slots], self.values[place, slots] = keys, values

    def read(self, place: int, slots: Slots) -> tuple[Floats, Floats]:
        """Read rows, [n, elements]."""
        return self.keys[place, slots], self.values[place, slots]

    def copy(self, source: int, target: int) -> None:
        """Copy all rows of a block to another one."""
        for array in self.arrays:
            array[:, self.slots_of(target)] = array[:, self.slots_of(source)]

    def slots_of(self, block: int) -> slice:
        """Give the slots of a block."""
        return slice(block * self.size, (block + 1) * self.size)


class Int8Rows(Rows):
    """Rows in int8. Each group of `GROUP` elements of a row has a scale: its largest element is 127 of it."""

    def make(self, shape: tuple[int, int, int]) -> None:
        """Make the arrays."""
        scales = *shape[:2], shape[2] // GROUP
        self.keys, self.values = np.zeros(shape, np.int8), np.zeros(shape, np.int8)
        self.key_scales, self.value_scales = np.zeros(scales, np.float32), np.zeros(scales, np.float32)

    @property
    def arrays(self) -> list[NDArray[np.generic]]:
        """All that is kept of rows."""
        return [self.keys, self.values, self.key_scales, self.value_scales]

    def write(self, place: int, slots: Slots, keys: Floats, values: Floats) -> None:
        """Write rows, [n, elements]."""
        self.keys[place, slots], self.key_scales[place, slots] = quantised(keys)
        self.values[place, slots], self.value_scales[place, slots] = quantised(values)

    def read(self, place: int, slots: Slots) -> tuple[Floats, Floats]:
        """Read rows, [n, elements]."""
        keys = restored(self.keys[place, slots], self.key_scales[place, slots])
        return keys, restored(self.values[place, slots], self.value_scales[place, slots])


def quantised(rows: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Round rows to int8, and give the scale of each group of elements."""
    parts = rows.reshape(len(rows), -1, GROUP)
    scales = np.abs(parts).max(-1) / np.float32(127)
    codes = np.rint(parts / np.where(scales == 0, 1, scales)[..., None])
    return codes.astype(np.int8).reshape(rows.shape), scales


def restored(codes: NDArray[np.generic], scales: Floats) -> Floats:
    """Give rows back from int8 and scales."""
    parts = codes.reshape(len(codes), -1, GROUP).astype(np.float32) * scales[..., None]
    return parts.reshape(codes.shape)
