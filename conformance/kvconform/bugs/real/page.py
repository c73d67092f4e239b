"""Bugs of pages, block tables and shared prefixes, planted in the reference's paged cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from weakref import WeakSet

from kvconform.bugs.planting import planted
from kvref.abilities.transfers import Numbered
from kvref.caches.page import Pages
from kvref.memory.page_pool import Pool
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import Array, Config


@planted("PAGE-18", breaks="PAGE-11 PAGE-6")
class SmallestPage(Pool):
    """Every pool looks rows up by the smallest page size of all pools."""

    alive: ClassVar[WeakSet[Pool]] = WeakSet()

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.alive.add(self)

    def write(self, table: Sequence[int], begin: int, rows: Pair) -> None:
        least = min(pool.size for pool in self.alive)
        for i in range(rows.keys.shape[1]):
            page, slot = table[min((begin + i) // least, len(table) - 1)], (begin + i) % least
            self.keys[page][:, slot], self.values[page][:, slot] = rows.keys[:, i], rows.values[:, i]


@planted("PAGE-17", breaks="PAGE-11 PAGE-43")
class SlotByBits(Pool):
    """The slot of a position is taken from its lowest bits, as if every page size were a power of two."""

    def write(self, table: Sequence[int], begin: int, rows: Pair) -> None:
        for i in range(rows.keys.shape[1]):
            page, slot = table[(begin + i) // self.size], (begin + i) & (self.size - 1)
            self.keys[page][:, slot], self.values[page][:, slot] = rows.keys[:, i], rows.values[:, i]


@planted("MEM-03", breaks="PAGE-22")
class GivenBackLater(Pages):
    """Pages behind the end of a sequence are given back at its next append instead of when it is cut."""

    def _cut(self, cut: Numbered, to: int) -> None:
        if to == 0:
            super()._cut(cut, to)
        cut.length = to

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        if sequence in self.in_use:
            super()._cut(self.in_use[sequence], self.in_use[sequence].length)
        super().append(keys, values, sequence)


@planted("PAGE-07", breaks="PAGE-13", anomaly="overwritten-rows")
class Unbounded(Pages):
    """The number of free pages is not checked: entries beyond the last page taken lead to page 0."""

    def _appendable(self, new: Pair, to: Numbered) -> None:
        try:
            super()._appendable(new, to)
        except Refused as refused:
            if refused.clause != "PAGE-13":
                raise

    def _make_room(self, to: Numbered, length: int) -> None:
        there = len(to.table) + self.pool.free
        super()._make_room(to, min(length, there * self.pool.size))
        to.table += [0] * (self.pool.entries(length) - len(to.table))


@planted("MEM-01", breaks="PAGE-17")
class CountedOnce(Pages):
    """The count of free pages is updated when pages are taken, but not when they are given back."""

    counted: int | None = None

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        super().append(keys, values, sequence)
        self.counted = self.pool.free

    def free_pages(self) -> int:
        return self.pool.free if self.counted is None else self.counted
