"""What a query sees: the definition that the project rests on.

A query sees a row if its view shows it. A sequence can go on at n if it still has every row that a query at n or
later sees below n: those that its view needs. A new view is one `shows`; `sees` is written out where histories are
long."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


class View:
    """Which rows a query sees, by positions. Nothing here hides rows that are newer than a query: masks do."""

    def shows(self, row: int, query: int) -> bool:
        """Whether a query sees a row."""
        raise NotImplementedError

    def sees(self, query: int, end: int) -> Sequence[int]:
        """The rows below `end` that a query sees, oldest first."""
        return [row for row in range(end) if self.shows(row, query)]

    def needs(self, n: int) -> Sequence[int]:
        """The rows below n that queries at n or later see: no view shows a later query a row that it hid before."""
        return self.sees(n, n)


@dataclass(frozen=True)
class Full(View):
    """All rows."""

    def shows(self, row: int, query: int) -> bool:
        """Always."""
        return True

    def sees(self, query: int, end: int) -> range:
        """All of them."""
        return range(end)


@dataclass(frozen=True)
class Window(View):
    """The newest rows, the query's own among them."""

    size: int

    def shows(self, row: int, query: int) -> bool:
        """Whether the row is among so many."""
        return query - row < self.size

    def sees(self, query: int, end: int) -> range:
        """From the window's first row on."""
        return range(max(0, query - self.size + 1), end)


@dataclass(frozen=True)
class Chunk(View):
    """The rows of the query's own chunk."""

    size: int

    def shows(self, row: int, query: int) -> bool:
        """Whether both lie in one chunk."""
        return row // self.size == query // self.size


@dataclass(frozen=True)
class Sinks(View):
    """The first rows, and the newest."""

    first: int
    newest: int

    def shows(self, row: int, query: int) -> bool:
        """Whether the row is one of either."""
        return row < self.first or query - row < self.newest


@dataclass(frozen=True)
class Chosen(View):
    """What a view shows of some rows that were chosen at an offset, and of all that came since: it counts these
    alone."""

    inner: View
    rows: tuple[int, ...]
    at: int

    def rank(self, row: int) -> int:
        """How many of the rows lie below a position."""
        return bisect_left(self.rows, row) if row < self.at else len(self.rows) + row - self.at

    def shows(self, row: int, query: int) -> bool:
        """Whether the row is one of these, and is seen among them."""
        there = row >= self.at or row in self.rows
        return there and self.inner.shows(self.rank(row), self.rank(query))

    def sees(self, query: int, end: int) -> Sequence[int]:
        """Those that are seen among them."""
        each = [*self.rows[: bisect_left(self.rows, end)], *range(self.at, end)]
        return [each[number] for number in self.inner.sees(self.rank(query), len(each))]


@dataclass(frozen=True)
class Conv(Window):
    """A window of always as many rows: those at negative positions are zeros, which nobody needs to have kept."""

    def sees(self, query: int, end: int) -> range:
        """From the first row on, which may stand before position 0."""
        return range(query - self.size + 1, end)

    def needs(self, n: int) -> range:
        """The rows among these that were appended."""
        return range(max(0, n - self.size + 1), n)


class State(View):
    """No rows: all tokens are folded into one sum. What is kept of it is named by how many tokens it is of."""

    def shows(self, row: int, query: int) -> bool:
        """Never."""
        return False

    def needs(self, n: int) -> Sequence[int]:
        """The state after n tokens; that of none is zeros, and is always there."""
        return [n] if n else []
