"""Common bugs: rows that should not be there."""

from __future__ import annotations

from collections.abc import Sequence

from kvconform.mutants.planting import planted
from kvref.bucket import Bucket
from kvref.store import Store
from kvspec.contract import Pair


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
