"""The pool of a cache that finds rows again: which pages are free, and which of them forgets its rows first."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappush
from itertools import count, islice

from kvgpu.memory.buffers import Workspace
from kvgpu.memory.known_pages import Known, Text, rows_of
from kvgpu.memory.page_pool import ONE, Pool
from kvspec.contract import Request
from kvspec.geometry import Config


class KeyedPool(Pool):
    """In the `free` pages nothing is found. In the `idle` ones something is, and no table has them either; the page
    that was given up first comes first. `begun[page]` says when a page was taken."""

    def __init__(self, space: Workspace, config: Config) -> None:
        super().__init__(space, config)
        self.known, self.parts = Known(self.total, self.size), config.granule == "row"
        self.idle: dict[int, None] = {}
        self.begun, self._clock = [0] * self.total, count()

    def unused(self) -> int:
        """Count the pages that no table has."""
        return len(self.free) + len(self.idle)

    def found(self, request: Request) -> tuple[int, list[int]]:
        """Give how many rows of a request are found, and where. The last token is left to compute."""
        text: Text | None = self.known.root(request)
        n, pages = 0, list[int]()
        rows = rows_of(request, 0, len(request.tokens))
        while text is not None:
            there = self.known.pages(text, rows[n : n + self.size], self.parts)
            page, run = max(there, key=self._liked, default=(0, 0))
            pages.append(page)
            n += run
            text = self.known.whole[page] if run == self.size else None
        n = min(n, len(rows) - 1)
        n -= 0 if self.parts else n % self.size
        return n, pages[: self.pages_for(n)]

    def _liked(self, each: tuple[int, int]) -> tuple[int, bool, int]:
        """Order pages: that with more rows, then one that a table has, then the one that was taken first."""
        page, run = each
        return run, bool(self.tables[page]), -self.begun[page]

    def learn(self, request: Request, table: Sequence[int], begin: int, end: int) -> None:
        """Have the rows of these positions found where they lie."""
        while begin < end:
            entry, stop = begin // self.size, min(end, begin - begin % self.size + self.size)
            text = self.known.whole[table[entry - 1]] if entry else self.known.root(request)
            assert text is not None, f"page {table[entry - 1]} is whole"
            self.known.add(table[entry], text, rows_of(request, begin, stop))
            begin = stop

    def take(self, count: int) -> list[int]:
        """Take pages, each for one table: the lowest in which nothing is found, else that which was given up first.
        The caller has checked that there are enough."""
        return [self._one() for _ in range(count)]

    def _one(self) -> int:
        if not self.free:
            self.forget(1)
        (page,) = super().take(1)
        self.begun[page] = next(self._clock)
        return page

    def parted(self, page: int, rows: int) -> int:
        """Take a page in place of a shared one, of which a table is removed: the first rows are copied to it."""
        taken = self._one()
        self.copy(page, taken, rows)
        self.known.copy(page, taken, rows)
        self.tables[page] -= ONE
        return taken

    def share(self, table: Sequence[int]) -> None:
        """Add a table to these pages."""
        super().share(table)
        for page in table:
            self.idle.pop(page, None)

    def give(self, table: Sequence[int]) -> None:
        """Remove a table from these pages, the last one first."""
        for page in reversed(table):
            self.tables[page] -= ONE
            if not self.tables[page]:
                self._let_go(page)

    def _let_go(self, page: int) -> None:
        """Keep a page without a table, if what is in it can be found."""
        if self.known.rows[page] if self.parts else self.known.whole[page]:
            self.idle[page] = None
        else:
            self._emptied(page)

    def _emptied(self, page: int) -> None:
        self.known.cut(page, 0)
        heappush(self.free, page)

    def forget(self, pages: int) -> None:
        """Have so many pages without a table forget what they have, or as many as there are."""
        for page in [*islice(self.idle, pages)]:
            del self.idle[page]
            self._emptied(page)
