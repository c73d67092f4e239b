"""Bugs of offsets, lengths and rewinds, planted in the reference's growing cache."""

from __future__ import annotations

from kvconform.bugs.planting import planted
from kvref.caches.growing import Growing
from kvspec.contract import Lengths


@planted("POS-02", breaks="GROW-5 CACHE-8", anomaly="stale-tail")
class LastOneStays(Growing):
    """A rewind cuts one row too few and then moves the offset back by one, so that the last row is stored
    twice."""

    left = 0

    def _clear(self) -> None:
        super()._clear()
        self.left = 0

    def rewind(self, to: int) -> None:
        super().rewind(min(to + 1, self.offset) if 0 < to < self.offset - self.left else to)
        self.left = self.offset - to

    def lengths(self) -> Lengths:
        real = super().lengths()
        return real._replace(offset=real.offset - self.left)
