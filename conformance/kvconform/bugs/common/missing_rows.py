"""Common bugs: rows that are missing."""

from __future__ import annotations

import numpy as np

from kvconform.bugs.planting import Over, planted
from kvref.abilities.snapshot import Snapshot
from kvref.caches.growing import Growing
from kvref.memory.rows import count
from kvspec.contract import Pair


@planted("hole", breaks="GROW-1 GROW-14")
class GrowingSkips(Growing):
    """The first single row after a chunk is written one slot too far."""

    chunk = False

    def _feed(self, new: Pair) -> None:
        if self.chunk and count(new) == 1:
            super()._feed(Pair(*(np.full_like(a, np.nan) for a in new)))
        self.chunk = count(new) > 1
        super()._feed(new)


@planted("keys-without-values", breaks="SNAP-17 SNAP-6")
class MergesKeysTwice(Over):
    """A merge takes the values from the keys."""

    def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None:
        made = super().merge(parent, child)
        if made is not None and parent is not None and child is not None:
            keys, values = made.rows
            width = min(keys.shape[3], values.shape[3])
            values[..., :width] = keys[..., :width]
        return made
