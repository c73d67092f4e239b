"""Keeps blocks that were evicted in the memory of the host, where they can be found a while longer."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from serving_engine.blocks import Rows
from serving_engine.prefix_cache import Name

Kept = list[NDArray[np.generic]]


class Host:
    """Rows of at most `blocks` blocks, by their names. What was kept or loaded least recently goes first."""

    def __init__(self, rows: Rows, blocks: int) -> None:
        self.rows, self.blocks = rows, blocks
        self.kept: OrderedDict[Name, Kept] = OrderedDict()

    def offload(self, name: Name, block: int) -> None:
        """Keep the rows of a block that is about to be taken for others."""
        self.kept[name] = [array[:, self.rows.slots_of(block)].copy() for array in self.rows.arrays]
        self.kept.move_to_end(name)
        if len(self.kept) > self.blocks:
            self.kept.popitem(last=False)

    def look_up(self, name: Name) -> Kept:
        """Give the rows of a block. They stay kept."""
        self.kept.move_to_end(name)
        return self.kept[name]

    def load(self, name: Name, kept: Kept, block: int) -> None:
        """Put rows that were kept under a name into a block."""
        for array, part in zip(self.rows.arrays, kept, strict=True):
            array[:, self.rows.slots_of(block)] = part
