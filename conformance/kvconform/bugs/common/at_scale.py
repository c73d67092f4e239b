"""Common bugs that begin after a long life, or beyond a number of things alive."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import count

import numpy as np

from kvconform.bugs.planting import Over, planted
from kvref.abilities.batch import Captured
from kvref.abilities.snapshot import Snapshot
from kvref.caches.growing import Growing
from kvref.caches.store import Store
from kvref.memory.page_pool import Pool
from kvspec.contract import Pair
from kvspec.geometry import Array


@planted("aliased-snapshot", breaks="SNAP-3")
class SixtyFourSnapshots(Over):
    """The memory of snapshots is a ring of 64: the next one overwrites the oldest that is alive."""

    def snapshot(self, start: int) -> Snapshot | None:
        made = super().snapshot(start)
        alive: deque[Snapshot] = self.__dict__.setdefault("alive", deque())
        if made is not None:
            alive.append(made)
        if len(alive) > 64 and (oldest := alive.popleft()).gone == "":
            for array in oldest.rows:
                array[...] = np.nan
        return made


@planted("wrong-position", breaks="GROW-1 GROW-2")
class AThousandSteps(Growing):
    """Each decode adds to a position that is kept in f16, which has no number behind 2,048 but 2,050."""

    def append(self, keys: Array, values: Array) -> None:
        one = keys.ndim == 4 and keys.shape[2] == 1
        self.decoded = np.float16(0) if self.offset == 0 else self.__dict__.get("decoded", np.float16(0))
        super().append(keys, values)
        self.decoded += np.float16(one)
        if one and self.decoded == 1000:
            self.offset -= 1


@planted("lost-rows", breaks="GROW-2 GROW-14 RING-2")
class TheRowBefore(Over):
    """The 700th append writes the rows of the one before once more."""

    def append(self, keys: Array, values: Array) -> None:
        life = self.__dict__.setdefault("life", [0, None])
        life[0] += 1
        if life[0] == 700 and life[1] is not None and keys.shape == life[1].keys.shape:
            keys, values = life[1]
        life[1] = Pair(keys.copy(), values.copy())
        super().append(keys, values)


@planted("stale-capture", breaks="BATCH-24 BATCH-13")
class ReplaysOfAByte(Store):
    """Captured work counts its replays in a byte: the 256th writes to where the first did."""

    def capture(self) -> Captured:
        captured, replays, replay = super().capture(), count(1), Captured.replay

        def counted(keys: Array, values: Array) -> None:
            if next(replays) == 256 and self.batch_ is not None:
                self.batch_.lengths = [max(0, n - 255) for n in self.batch_.lengths]
            replay(captured, keys, values)

        captured.replay = counted  # type: ignore[method-assign]
        return captured


@planted("miscounted-memory", breaks="PAGE-17 PAGE-22 PAGE-26")
class LosesEvery256th(Pool):
    """The list of free pages is a ring of 256: every 256th page that is given back is lost."""

    given = 0

    def give(self, table: Sequence[int]) -> None:
        super().give(table)
        for page in table:
            if self.counts[page] == 0:
                self.given += 1
                self.counts[page] = int(self.given % 256 == 0)
