"""A check: one named piece of the suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kvconform.runner.under_test import AdapterUnderTest


@dataclass(frozen=True)
class Check:
    """Judges traces on the adapter under test, and notes in its tally what they showed."""

    id: str
    """Chapter, source of the traces, name: `ring/example/RING-4.1`. No path: moving a file changes no record."""
    chapter: str
    """The chapter it is about; for checks beyond the chapters `honesty` or `system`."""
    needs: frozenset[str]
    """Chapters that an adapter must claim to be judged by it."""
    run: Callable[[AdapterUnderTest], None]
    clause: str = ""
    """The one clause it is about; empty where it is about a whole chapter or more."""
    takes_long: bool = False
    """Whether quick runs, and runs of a few clauses, leave it out."""
