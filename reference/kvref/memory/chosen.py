"""Which rows a cache goes on with after a caller chose some: those, and all that were appended since."""

from __future__ import annotations

from typing import NamedTuple


class Chosen(NamedTuple):
    """The positions that were chosen at an offset, in order. Before any choice there are none, chosen at 0."""

    positions: tuple[int, ...] = ()
    at: int = 0

    def count(self, offset: int) -> int:
        """How many rows the cache has had since, with those chosen."""
        return len(self.positions) + offset - self.at

    def position(self, number: int) -> int:
        """Where the row of a number was appended."""
        chosen = len(self.positions)
        return self.positions[number] if number < chosen else self.at + number - chosen


ALL = Chosen()
"""No choice: all rows that were appended."""
