"""What one check of exploration draws."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from kvspec.registry import demand_chapters


@dataclass(frozen=True)
class Exploration:
    """A strategy, and what an adapter must claim to be judged by it."""

    name: str
    needs: tuple[str, ...]
    """Chapters it takes beside its own."""
    strategy: Callable[..., Any]
    """Gives what draws its traces. A strategy that adds something to traces of another chapter takes what draws
    those. One that is `of_one` takes what draws traces on such a cache."""
    counted_as: str = ""
    """What its coverage is counted under, where that is not the chapter."""
    over: str = ""
    """The chapter to whose traces it adds something."""
    of_one: bool = False
    """Whether it draws on a cache of one sequence."""
    any_of: tuple[tuple[str, ...], ...] = ()
    """Groups of chapters: of each it takes one at least, and draws on all that are claimed, which it is told."""

    def __post_init__(self) -> None:
        demand_chapters({self.counted_as, self.over} - {""}, f"the exploration {self.name}")

    def number(self, traces: int) -> int:
        """Give how many traces it draws where others draw so many. It draws half of them if it only adds something
        to traces of another chapter: these are also judged as they are."""
        return -(-traces // 2) if self.over else traces

    def drawn(self, claimed: Collection[str]) -> Any:
        """What draws its traces for an adapter that claims these chapters."""
        return self.strategy(claimed=frozenset(claimed)) if self.any_of else self.strategy()
