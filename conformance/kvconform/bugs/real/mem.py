"""Bugs in what is held, planned and given back, planted in the reference."""

from __future__ import annotations

from typing import Any

from kvconform.bugs.planting import planted
from kvref.caches.growing import Growing
from kvref.caches.ring import Ring


@planted("MEM-01", breaks="MEM-1 MEM-10")
class Stale(Growing):
    """The bytes held are updated when the cache grows, but not when it is freed."""

    counted = 0

    def append(self, *rows: Any) -> None:
        super().append(*rows)
        self.counted = self.rows.nbytes

    def held(self) -> int:
        super().held()
        return self.counted


@planted("MEM-04", breaks="MEM-1 MEM-6")
class Pinned(Ring):
    """A long prefill is cut down to a view, so that all of its memory stays allocated."""

    whole = 0

    def _prefill(self, new: Any) -> None:
        super()._prefill(new)
        self.whole = self.rows.nbytes

    def held(self) -> int:
        return max(super().held(), self.whole)

    def free(self) -> None:
        super().free()
        self.whole = 0


@planted("MEM-09", breaks="MEM-9", anomaly="changed-though-refused")
class Leaking(Growing):
    """A refused append does not give back what it had already allocated."""

    lost = 0

    def append(self, keys: Any, values: Any) -> None:
        self.lost += keys.nbytes + values.nbytes
        super().append(keys, values)
        self.lost = 0

    def held(self) -> int:
        return super().held() + self.lost
