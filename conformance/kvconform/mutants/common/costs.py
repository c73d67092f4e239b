"""Common bugs: costs."""

from __future__ import annotations

from kvconform.mutants.planting import planted
from kvref.page import Pages


@planted("miscounted-memory", breaks="PAGE-17 PAGE-22")
class PagesKeepTheEnd(Pages):
    """A truncate shortens the sequence but does not give its pages back."""

    def truncate(self, sequence: int, to: int) -> None:
        before = list(self._of(sequence).table)
        self.pool.share(before)
        super().truncate(sequence, to)
        self.pool.give(self._of(sequence).table)
