"""Common bugs: rows that should not be there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvconform.mutants.common.caches import Changing, Over
from kvconform.mutants.planting import planted
from kvref.bucket import Bucket
from kvref.growing import Growing
from kvref.snapshot import Snapshot
from kvref.store import Store
from kvspec.contract import Pair
from kvspec.geometry import Array


@planted("stale-tail", breaks="SNAP-6 SNAP-7")
class GrowingKeepsItsTail(Growing):
    """After a restore the rows behind the restored ones are still there."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        before = self.offset
        super().restore(saved, to)
        self.offset = max(before, self.offset)


@planted("stale-tail", breaks="SNAP-6 SNAP-14")
class RestoresToTheEnd(Over):
    """A restore brings back all saved rows, whatever its target."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        if saved is not None and not saved.gone and saved.start <= to <= saved.stop:
            to = saved.stop
        super().restore(saved, to)


@planted("stale-tail", breaks="STORE-21")
class StoreKeepsItsTail(Store):
    """A load leaves the old rows behind the loaded ones."""

    def load(self, saved: Sequence[Pair]) -> None:
        old = [a.copy() for a in (*self.keys, *self.values)]
        super().load(saved)
        for now, before, n in zip((*self.keys, *self.values), old, self.lengths_ * 2, strict=True):
            now[:, n:] = before[:, n:]


@planted("stale-tail", breaks="BUCKET-19")
class BucketCutsOneShort(Bucket):
    """A cut leaves one row too many."""

    def cut(self, to: int) -> None:
        super().cut(min(self.past_, to + 1) if to >= 0 else to)


@planted("doubled-rows", breaks="GROW-1 RING-2")
class RowsTwice(Changing):
    """A single row is stored twice."""

    def changed(self, rows: Array, kind: str) -> Array:
        return np.repeat(rows, 2, axis=2) if rows.shape[2] == 1 else rows
