"""One layer of a store in the list model."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvspec.rows.serials import ZEROED


@dataclass
class Layer:
    """One layer: what was written where, in order, and up to where its rows are live."""

    writes: list[tuple[int, int]] = field(default_factory=list)
    length: int = 0

    def rows(self, n: int) -> list[int]:
        """The serials of the rows at the first n positions: at each the newest that was written there."""
        newest = dict(self.writes)
        return [newest.get(position, ZEROED) for position in range(n)]

    def live(self) -> list[int]:
        """The serials of the live rows."""
        return self.rows(self.length)
