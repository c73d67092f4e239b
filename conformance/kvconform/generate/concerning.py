"""The traces that concern clauses: those in which the reference exercises one of them, as far as that is frozen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

from kvconform.generate import frozen_covers
from kvconform.generate.frozen_covers import Cover
from kvspec.reading.clauses import index
from kvspec.trace import Outcome, Trace

Clauses = frozenset[str]

BESIDE = frozenset(("can", "accepts", "held", "plan", "meter", "free"))
"""Observables that are also judged at steps that do not exercise the clauses on them."""


def some(traces: Iterable[Trace], clauses: Clauses) -> Iterator[Trace]:
    """Give the traces that concern clauses. What is not frozen may. If no clauses are asked for, all do."""
    told = bool(clauses) and all(map(_told, clauses))
    return (t for t in traces if not told or t.frozen is None or _exercise(t.frozen.outcomes, clauses))


def cover(whole: Cover, clauses: Clauses) -> Cover:
    """Give the traces of a cover that concern clauses."""
    if not clauses or not all(map(_told, clauses)):
        return whole
    lines = (line for line in whole.lines if _exercise(whole.frozen[line].outcomes, clauses))
    return replace(whole, lines=tuple(lines))


@cache
def of_chapter(chapter: str, clauses: Clauses) -> int:
    """Count the traces of a chapter's covers that concern clauses."""
    return sum(len(cover(each, clauses).lines) for each in frozen_covers.load(chapter))


def _exercise(outcomes: Iterable[Outcome], clauses: Clauses) -> bool:
    return any(not clauses.isdisjoint(outcome.cites) for outcome in outcomes)


@cache
def _told(clause: str) -> bool:
    """Tell whether a breach shows only at steps that exercise the clause, and covers say which these are."""
    about, alone = index()[clause], frozenset((clause,))
    covers = (each for chapter in about.chapters for each in frozen_covers.load(chapter))
    cited = any(_exercise(frozen.outcomes, alone) for each in covers for frozen in each.frozen.values())
    return cited and BESIDE.isdisjoint(about.seen_in)
