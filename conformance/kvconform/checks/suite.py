"""The suite: all checks, and those of them that a run asks for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain

from kvconform.checks import covers, dialects, examples, exploration, honesty, large, laws, moved_examples, system
from kvconform.checks.check import Check
from kvconform.runner.settings import Settings
from kvspec.contract import CHAPTERS, Description
from kvspec.operations.table import caches_with
from kvspec.reading import clauses


@cache
def suite() -> Mapping[str, Check]:
    """All checks by their ids, in the order in which they are judged.

    Worked examples come first: they take seconds, and show most failures on the most readable traces. Then one
    chapter follows another. The spec begins with the basic ones: what breaks there breaks many others too.
    """
    sources = moved_examples, dialects, covers, laws, exploration, large
    first = sorted(examples.checks(), key=_place)
    rest = sorted(chain.from_iterable(source.checks() for source in sources), key=_place)
    return {check.id: check for check in (*first, *honesty.checks(), *rest, *system.checks())}


def _place(check: Check) -> int:
    return CHAPTERS.index(check.chapter)


def selected(settings: Settings, adapter: Description) -> list[Check]:
    """The checks that the settings ask for and the adapter's claims allow."""
    asked = settings.selected()
    chapters = {honesty.CHAPTER, *(clause.chapter for clause in asked.values())}
    layers = set(caches_with("speculate")) & set(adapter.chapters)
    if not settings.quick and set(asked) == set(clauses.index()) and layers:
        chapters.add(system.CHAPTER)
    claimed, whole = set(adapter.chapters), not settings.quick and not settings.clauses
    return [
        check
        for check in suite().values()
        if check.needs <= claimed
        and (check.clause in asked if check.clause else check.chapter in chapters)
        and (not settings.again or check.id in settings.again)
        and (whole or not check.takes_long)
    ]
