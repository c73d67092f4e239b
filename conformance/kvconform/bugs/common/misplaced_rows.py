"""Common bugs: rows that are not where they are looked for."""

from __future__ import annotations

from kvconform.bugs.planting import planted
from kvref.caches.growing import Growing
from kvref.memory.rows import count
from kvspec.contract import Pair


@planted("stale-cursor", breaks="CACHE-8 GROW-2 GROW-14")
class GrowingStaleCursor(Growing):
    """A rewind moves the offset, and the next rows are written behind the old tail."""

    def _clear(self) -> None:
        super()._clear()
        self.cursor = 0

    def _feed(self, new: Pair) -> None:
        offset, self.offset = self.offset, max(self.offset, self.cursor)
        super()._feed(new)
        self.cursor, self.offset = self.offset, offset + count(new)
