"""Bugs of lengths, positions, bounds and host snapshots, planted in the reference's store."""

from __future__ import annotations

from collections.abc import Sequence

from kvconform.bugs.planting import planted
from kvref.caches.store import Store
from kvspec.contract import Pair


class Clipping(Store):
    """Rows beyond the end are not stored."""

    def _write(self, layer: int, at: int, rows: Pair) -> None:
        super()._write(layer, at, Pair(*(a[:, : self.max_len - at] for a in rows)))


@planted("POS-06", breaks="STORE-8", anomaly="missing-refusal")
class OnePastTheEnd(Clipping):
    """The bound of a position is inclusive: a row at max_len is accepted but not stored."""

    def _demand_room(self, layers: Sequence[int], n: int) -> None:
        super()._demand_room(layers, n - 1)


@planted("BOUND-02", breaks="STORE-8")
class RoomForOne(Clipping):
    """The check for room assumes one row, however many are appended."""

    def _demand_room(self, layers: Sequence[int], n: int) -> None:
        super()._demand_room(layers, min(n, 1))


@planted("SNAP-14", breaks="STORE-20", anomaly="keys-without-values")
class KeysWithoutValues(Store):
    """A load brings back the keys but not the values."""

    def load(self, saved: Sequence[Pair]) -> None:
        before = [a.copy() for a in self.values]
        super().load(saved)
        self.values = before
