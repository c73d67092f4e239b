"""What to try first on a mutant: the trace that showed it before, or those that showed the mutants most like it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kvconform.bugs.mutant import Mutant
from kvconform.bugs.trace_sources import SOURCES, Hints, Item
from kvspec.contract import CHAPTERS
from kvspec.errors import BadInput
from kvspec.notation import from_sentence, sentence
from kvspec.records.mutants import Matrix
from kvworkshop.hunt import AGAIN, HuntResult

MOST = 6, 3
"""Traces of each source that are tried first: those that showed other faults of the function, and of its module."""


def again(matrix: Matrix) -> dict[str, Hints]:
    """Give what showed each systematic fault in a matrix, by its id: the worked example that begins so, or else the
    trace alone. Nothing where the trace can no longer be read."""
    examples, found = dict(_beginnings()), dict[str, Hints]()
    for m in matrix.mutants:
        if m.bug_class == "systematic" and m.killed and m.trace:
            try:
                item = examples.get(m.trace) or Item(from_sentence(m.trace))
            except BadInput:
                continue
            found[m.id] = {AGAIN: (item,)}
    return found


def _beginnings() -> Iterator[tuple[str, Item]]:
    """The beginnings of all worked examples, in the words of a matrix; the first example last, which is kept."""
    for item in reversed([item for chapter in CHAPTERS for item in SOURCES["examples"](chapter)]):
        yield from ((sentence(item.trace.cut(n)), item) for n in range(1, len(item.trace.ops) + 1))


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
