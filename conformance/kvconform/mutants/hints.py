"""What to try first on a mutant: whatever showed those most like it."""

from __future__ import annotations

from collections import defaultdict

from kvconform.mutants.hunt import SOURCES, Hints, Hunted, Item
from kvconform.mutants.mutant import Mutant

OF_THE_FUNCTION, OF_THE_MODULE = 6, 3
"""Traces of each source that are tried first: those that showed other faults of the function, and of its module."""


class Seen:
    """The traces that showed systematic mutants so far, by function and by module, the latest first."""

    def __init__(self) -> None:
        self.latest: dict[tuple[str, str], list[Item]] = defaultdict(list)

    def note(self, mutant: Mutant, found: Hunted) -> None:
        """Remember what showed this one."""
        for kill in found.kills.values():
            if kill is None or kill.item is None:
                continue
            for place in _places(mutant):
                items = self.latest[place, kill.source]
                if kill.item in items:
                    items.remove(kill.item)
                items.insert(0, kill.item)
                del items[OF_THE_FUNCTION:]

    def hints(self, mutant: Mutant) -> Hints:
        """What to try first on this one, of each source; nothing where the right clause is looked for."""
        if mutant.cls != "systematic":
            return {}
        function, module = _places(mutant)
        found: Hints = {}
        for source in SOURCES:
            near, far = self.latest[function, source], self.latest[module, source][:OF_THE_MODULE]
            found[source] = (*near, *(i for i in far if i not in near))
        return found


def _places(mutant: Mutant) -> tuple[str, str]:
    """The function that holds a fault, and its module, from `kvref.ring.rewind: to < 0: Lt swapped`."""
    function = mutant.id.partition(":")[0]
    return function, function.rpartition(".")[0]
