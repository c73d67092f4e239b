"""A check: one named piece of the suite."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from kvconform.runner.under_test import AdapterUnderTest
from kvspec.registry import demand_chapters

SYSTEM = "system"
"""The chapter of the check of all chapters at once."""


@dataclass(frozen=True)
class Check:
    """Judges traces on the adapter under test, and notes in its tally what they showed."""

    id: str
    """Chapter, source of the traces, name: `ring/example/CACHE-1.2`. No path: moving a file changes no record."""
    chapter: str
    """The chapter it is about; for checks beyond the chapters `honesty` or `system`."""
    needs: frozenset[str]
    """Chapters that an adapter must claim to be judged by it."""
    run: Callable[[AdapterUnderTest], None]
    clause: str = ""
    """The one clause it is about; empty where it is about a whole chapter or more."""
    any_of: tuple[frozenset[str], ...] = ()
    """Groups of chapters, of each of which an adapter must claim one at least."""
    takes_long: bool = False
    """Whether quick runs, and runs of a few clauses, leave it out."""

    def __post_init__(self) -> None:
        demand_chapters(self.needs.union(*self.any_of), f"the check {self.id}")

    def lacks(self, claimed: Collection[str]) -> list[str]:
        """The chapters that it takes and that are not claimed: `ring or store` where one is enough."""
        groups = [" or ".join(sorted(group)) for group in self.any_of if not group & set(claimed)]
        return [*sorted(self.needs - set(claimed)), *groups]
