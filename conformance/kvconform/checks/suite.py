"""The suite: all checks, and those of them that a run asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain

from kvconform.checks import (
    by_claim,
    covers,
    examples,
    exploration,
    geometry,
    honesty,
    laws,
    walks,
)
from kvconform.checks.check import SYSTEM, Check
from kvconform.runner.settings import Settings
from kvconform.runner.verdict.tally import source_of
from kvspec.contract import CHAPTERS, Description
from kvspec.errors import NotWhole
from kvspec.operations.table import caches_with
from kvspec.reading import clauses
from kvspec.registry import KINDS, RECORDS


@cache
def suite(chapters: tuple[str, ...] = CHAPTERS, clauses: tuple[str, ...] = ()) -> Mapping[str, Check]:
    """All checks by their ids, in the order in which they are judged. Of some chapters, and of some clauses where
    examples and laws are concerned, only what these need is read.

    Worked examples come first: they take seconds, and show most failures on the most readable traces. Then one
    chapter follows another. The spec begins with the basic ones: what breaks there breaks many others too.
    """
    first, of_laws = examples.checks(chapters, clauses), laws.checks(chapters, clauses)
    before = (source.checks(chapters) for source in (by_claim, geometry, covers))
    explored = _listed("explore", chapters, exploration.checks(chapters))
    large, system = ((), ()) if clauses else _of_whole_runs(chapters)
    rest = sorted(chain(*before, of_laws, explored, walks.checks(chapters), large), key=_place)
    return {check.id: check for check in (*first, *honesty.checks(), *rest, *system)}


def _of_whole_runs(chapters: tuple[str, ...]) -> tuple[Iterable[Check], Iterable[Check]]:
    """Large sizes and the system: a run on a few clauses judges neither, and does not read what makes them."""
    from kvconform.checks import large, system

    return _listed("large", chapters, large.checks(chapters)), system.checks()


def _listed(source: str, chapters: tuple[str, ...], found: Iterable[Check]) -> list[Check]:
    """Give the checks of a source. Raises NotWhole unless they are those that the records of the chapters list."""
    there = list(found)
    listed = {f"{chapter}/{source}/{name}" for chapter in chapters for name in _names(chapter, source)}
    for check in sorted(listed ^ {check.id for check in there}):
        where = f"chapters/{check.partition('/')[0]}.toml, [checks] {source},"
        fault = (
            "lists the check {}, which nothing gives"
            if check in listed
            else "does not list the check {}, which is there"
        )
        raise NotWhole(f"{where} {fault.format(check)}")
    return there


def _names(chapter: str, source: str) -> Iterator[str]:
    """Give the names that a record lists. `each kind` stands for every kind of cache."""
    for name in RECORDS[chapter].checks.get(source, ()):
        yield from KINDS if name == "each kind" else (name,)


def _place(check: Check) -> int:
    return CHAPTERS.index(check.chapter)


SOONEST = ("", "example", "moved", "dialect", "geometry", "walk", "law", "explore", "cover", "large")
"""The sources of traces, in the order of what an operation of theirs newly exercises; first what has no source."""


def by_turns(checks: Iterable[Check]) -> list[Check]:
    """Order checks so that a short run shows most. Sources that newly exercise most come first; within a source,
    chapters take turns."""
    before, placed = Counter[tuple[int, str]](), list[tuple[tuple[int, int], Check]]()
    for check in checks:
        of = SOONEST.index(source_of(check.id)), check.chapter
        placed.append(((of[0], before[of]), check))
        before[of] += 1
    return [check for _, check in sorted(placed, key=lambda each: each[0])]


def by_id(check: str) -> Check:
    """Give a check by its id; only its chapter is read."""
    return suite(tuple(chapter for chapter in CHAPTERS if check.startswith(f"{chapter}/")))[check]


def read_for(settings: Settings) -> Mapping[str, Check]:
    """Read the checks of the chapters that the settings ask for, and no others."""
    chapters = settings.shown_by(settings.selected().values())
    whole = len(chapters) == len(CHAPTERS) and not settings.clauses
    return suite() if whole else suite(tuple(c for c in CHAPTERS if c in chapters), settings.clauses)


def selected(settings: Settings, adapter: Description) -> list[Check]:
    """The checks that the settings ask for and the adapter's claims allow."""
    return [check for check in _wanted(settings, adapter) if not check.lacks(adapter.chapters)]


def shut_out(settings: Settings, adapter: Description) -> dict[str, str]:
    """The checks of claimed chapters that the settings ask for and the adapter's claims do not allow, each with the
    chapters that are missing. What shows a clause alone is told at the clause."""
    lacks = {c: c.lacks(adapter.chapters) for c in _wanted(settings, adapter) if c.chapter in adapter.chapters}
    return {
        c.id: f"takes {', '.join(missing)}" for c, missing in lacks.items() if missing and "/example/" not in c.id
    }


def _wanted(settings: Settings, adapter: Description) -> Iterator[Check]:
    asked = settings.selected()
    chapters = {honesty.CHAPTER, *settings.shown_by(asked.values())}
    layers = set(caches_with("speculate")) & set(adapter.chapters)
    if not settings.quick and set(asked) == set(clauses.index()) and layers:
        chapters.add(SYSTEM)
    whole = not settings.quick and not settings.clauses
    for check in read_for(settings).values():
        wanted = check.chapter in chapters and (not check.clause or check.clause in asked)
        if wanted and (not settings.again or check.id in settings.again) and (whole or not check.takes_long):
            yield check
