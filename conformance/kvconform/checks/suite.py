"""The suite: all checks, and those of them that a run asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain

from kvconform.checks import (
    covers,
    dialects,
    examples,
    exploration,
    geometry,
    honesty,
    large,
    laws,
    moved_examples,
    system,
    walks,
)
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
    sources = moved_examples, dialects, geometry, covers, laws, exploration, walks, large
    first = sorted(examples.checks(), key=_place)
    rest = sorted(chain.from_iterable(source.checks() for source in sources), key=_place)
    return {check.id: check for check in (*first, *honesty.checks(), *rest, *system.checks())}


def _place(check: Check) -> int:
    return CHAPTERS.index(check.chapter)


def selected(settings: Settings, adapter: Description) -> list[Check]:
    """The checks that the settings ask for and the adapter's claims allow."""
    return [check for check in _asked(settings, adapter) if not check.lacks(adapter.chapters)]


def shut_out(settings: Settings, adapter: Description) -> dict[str, str]:
    """The checks of claimed chapters that the settings ask for and the adapter's claims do not allow, each with the
    chapters that are missing. What shows a clause alone is told at the clause."""
    lacks = {c: c.lacks(adapter.chapters) for c in _asked(settings, adapter) if c.chapter in adapter.chapters}
    return {
        c.id: f"takes {', '.join(missing)}" for c, missing in lacks.items() if missing and "/example/" not in c.id
    }


def _asked(settings: Settings, adapter: Description) -> Iterator[Check]:
    asked = settings.selected()
    chapters = {honesty.CHAPTER, *settings.shown_by(asked.values())}
    layers = set(caches_with("speculate")) & set(adapter.chapters)
    if not settings.quick and set(asked) == set(clauses.index()) and layers:
        chapters.add(system.CHAPTER)
    whole = not settings.quick and not settings.clauses
    for check in suite().values():
        wanted = check.chapter in chapters and (not check.clause or check.clause in asked)
        if wanted and (not settings.again or check.id in settings.again) and (whole or not check.takes_long):
            yield check
