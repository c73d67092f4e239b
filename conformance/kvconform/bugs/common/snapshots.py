"""Common bugs that take several snapshots, or a late start, a rewind below it and appends beyond it."""

from __future__ import annotations

import numpy as np

from kvconform.bugs.planting import planted
from kvref.abilities.snapshot import Snapshot
from kvref.caches.growing import Growing
from kvspec.contract import Pair
from kvspec.geometry import Array


class Late(Growing):
    """Keeps the snapshots that it made from a late start."""

    late: tuple[Snapshot, ...] = ()

    def snapshot(self, start: int) -> Snapshot | None:
        """Keep it, if it has a late start."""
        made = super().snapshot(start)
        if made is not None and made.start > 0:
            self.late += (made,)
        return made


@planted("aliased-snapshot", breaks="SNAP-3 SNAP-6")
class UndoesFiveWrites(Late):
    """A snapshot from a late start shares the cache's rows: it undoes what was written to them since, but remembers
    five writes at most."""

    def _feed(self, new: Pair) -> None:
        first, beyond = self.offset, self.offset + new.keys.shape[2]
        for saved in self.late:
            low, high = max(first, saved.start), min(beyond, saved.stop)
            if low < high and not saved.gone:
                writes = saved.__dict__["writes"] = saved.__dict__.get("writes", 0) + 1
                for rows, written in zip(saved.rows, new, strict=True) if writes > 5 else ():
                    rows[:, :, low - saved.start : high - saved.start] = written[:, :, low - first : high - first]
        super()._feed(new)


@planted("half-restored", breaks="SNAP-3 SNAP-4 SNAP-6")
class GivesUpTheOtherBranch(Late):
    """Snapshots from a late start are branches of a tree: going on from an older one gives up the newer ones."""

    branch = 0

    def restore(self, saved: Snapshot | None, to: int) -> None:
        super().restore(saved, to)
        self.branch = saved.stop if saved is not None else 0

    def append(self, keys: Array, values: Array) -> None:
        super().append(keys, values)
        for newer in (saved for saved in self.late if self.branch and saved.stop > self.branch and not saved.gone):
            for rows in newer.rows:
                rows[...] = np.nan
        self.branch = 0
