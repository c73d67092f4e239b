"""What to try first on a mutant: the traces that showed the mutants most like it."""

from __future__ import annotations

from collections import defaultdict

from kvconform.bugs.mutant import Mutant
from kvconform.bugs.trace_sources import SOURCES, Hints, Item
from kvworkshop.hunt import HuntResult

MOST = 6, 3
"""Traces of each source that are tried first: those that showed other faults of the function, and of its module."""


class LatestKills:
    """The traces that showed systematic mutants so far, by the place of the fault, the latest first."""

    def __init__(self) -> None:
        self.latest: dict[tuple[str, str], list[Item]] = defaultdict(list)

    def note(self, mutant: Mutant, result: HuntResult) -> None:
        """Remember what showed this one."""
        for kill in result.kills.values():
            if kill is None or kill.item is None:
                continue
            for place in mutant.place:
                items = self.latest[place, kill.source]
                if kill.item in items:
                    items.remove(kill.item)
                items.insert(0, kill.item)
                del items[max(MOST) :]

    def hints(self, mutant: Mutant) -> Hints:
        """What to try first on this one, by source. Nothing on a real bug: its own clause must be blamed."""
        return {source: self._hints(mutant, source) for source in SOURCES}

    def _hints(self, mutant: Mutant, source: str) -> tuple[Item, ...]:
        items: list[Item] = []
        for place, most in zip(mutant.place, MOST, strict=False):  # a kernel's text has no functions to tell apart
            items += [i for i in self.latest[place, source][:most] if i not in items]
        return tuple(items)
