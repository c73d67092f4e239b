"""A ring that is a deque, and a bounded cache that is a dictionary."""

from __future__ import annotations

from collections import deque

from hostile.attacks.designs.one_sequence import Sequenced
from hostile.attacks.designs.rows import Row, demand
from kvspec.geometry import Array
from kvspec.masks import Logical, Window


class DequeRing(Sequenced):
    """A ring that is a deque of the newest rows, and goes nowhere back."""

    needed = ("window",)
    kind = "ring"

    def clear(self) -> None:
        self.rows: deque[Row] = deque()

    def add(self, rows: list[Row]) -> None:
        window = self.config.window or 0
        while len(self.rows) > window - 1:
            self.rows.popleft()
        self.rows.extend(rows)

    def held(self) -> list[Row]:
        return list(self.rows)

    def seen(self) -> list[Row]:
        window = self.config.window or 0
        return list(self.rows)[max(0, len(self.rows) - window + 1) :]

    def cut(self, to: int) -> None:
        """Nothing: it only goes where it is."""

    def can_rewind(self, to: int) -> bool:
        return to == self.offset

    def mask(self, logical: Logical) -> Array | None:
        return super().mask((*logical, Window(self.config.window or 0)))


class ByPosition(Sequenced):
    """A bounded cache that is a dictionary from positions to rows."""

    needed = ("max_len",)
    kind = "bounded"

    def clear(self) -> None:
        self.rows: dict[int, Row] = {}

    def add(self, rows: list[Row]) -> None:
        self.rows |= {self.offset + i: row for i, row in enumerate(rows)}

    def held(self) -> list[Row]:
        return [self.rows[position] for position in range(len(self.rows))]

    def cut(self, to: int) -> None:
        for position in range(to, self.offset):
            del self.rows[position]

    def demand_room(self, n: int) -> None:
        demand(self.offset + n <= (self.config.max_len or 0), "no room")
