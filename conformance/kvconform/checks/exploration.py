"""Checks from exploration: traces that Hypothesis draws on larger configurations."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from kvconform.checks.check import Check
from kvconform.generate import frozen_traces
from kvconform.generate.amounts import SEED
from kvconform.generate.registry import explorations
from kvconform.generate.strategies.exploration import Exploration
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS


def checks(chapters: Collection[str] = CHAPTERS) -> Iterator[Check]:
    """One for each exploration of each chapter."""
    for chapter, each in explorations(chapters).items():
        for e in each:
            run = partial(_explore, exploration=e, chapter=chapter)
            needs = frozenset((chapter, *e.needs))
            yield Check(f"{chapter}/explore/{e.name}", chapter, needs, run, any_of=tuple(map(frozenset, e.any_of)))


def _explore(under_test: AdapterUnderTest, exploration: Exploration, chapter: str) -> None:
    number, counted_as = exploration.number(under_test.traces), exploration.counted_as or chapter
    whole = under_test.adapter.complete and set(under_test.adapter.chapters) == set(CHAPTERS)
    frozen = whole and under_test.seed == SEED
    known = frozen_traces.explored(chapter, exploration.name, number) if frozen else frozen_traces.NONE
    drawn = partial(exploration.drawn, under_test.adapter.chapters)
    under_test.explore(drawn, counted_as, number, known)
