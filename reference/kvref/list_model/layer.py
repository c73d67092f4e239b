"""One layer of a store in the list model."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvspec.serials import ZEROED


@dataclass
class Layer:
    """One layer: what was written where, in order, and up to where its rows are live."""

    writes: list[tuple[int, int]] = field(default_factory=list)
    length: int = 0

    def row(self, position: int) -> int:
        """The serial of the row at a position: the newest that was written there."""
        return next((serial for at, serial in reversed(self.writes) if at == position), ZEROED)

    def live(self) -> list[int]:
        """The serials of the live rows."""
        return [self.row(position) for position in range(self.length)]
