"""Common bugs of scales in caches that have many sequences: an operation moves codes, and leaves the scales where
they are, or takes those of another place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvconform.bugs.planting import planted
from kvconform.bugs.real.forms import leave
from kvref.memory.page_pool import Pool
from kvspec.contract import Pair


@planted("wrong-scale", breaks="ROW-6")
class ScaleOfTheSlot(Pool):
    """A row that takes the place of another in a page gets the scale that lies there."""

    def write(self, table: Sequence[int], begin: int, rows: Pair) -> None:
        written: dict[int, int] = self.__dict__.setdefault("written", {})
        for page, slots, positions in self.runs(table, begin, begin + rows.keys.shape[1]):
            again = slice(slots.start, max(slots.start, min(slots.stop, written.get(page, 0))))
            places = self.keys[page][:, again], self.values[page][:, again]
            before = [a.copy() for a in places]
            part = slice(positions.start - begin, positions.stop - begin)
            super().write([page], slots.start, Pair(rows.keys[:, part], rows.values[:, part]))
            leave(self.kept, places, before)
            written[page] = max(written.get(page, 0), slots.stop)


@planted("wrong-scale", breaks="ROW-6")
class ScalesOfEntries(Pool):
    """Scales are looked up by the number of an entry, and not by the page that it names."""

    def seen(self, table: Sequence[int], n: int) -> Pair:
        if self.kept.forms is None:
            return super().seen(table, n)
        rows = self.kept_rows(table, n)
        leave(self.kept, rows, self.kept_rows(range(self.entries(n)), n))
        return self.read(rows)


@planted("wrong-scale", breaks="ROW-7 ROW-5")
class ScaleOfThePage(Pool):
    """All rows of a page are read with the scale of its first row."""

    def kept_rows(self, table: Sequence[int], n: int) -> Pair:
        rows = super().kept_rows(table, n)
        first = np.arange(n) // self.size * self.size
        leave(self.kept, rows, [a[:, first] for a in rows])
        return rows
