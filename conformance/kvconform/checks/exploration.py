"""Checks from exploration: traces that Hypothesis draws on larger configurations."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from kvconform.checks.check import Check
from kvconform.generate.registry import explorations
from kvconform.generate.strategies.exploration import Exploration
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS


def checks(chapters: Collection[str] = CHAPTERS) -> Iterator[Check]:
    """One for each exploration of each chapter."""
    for chapter, each in explorations(chapters).items():
        for e in each:
            run = partial(_explore, exploration=e, counted_as=e.counted_as or chapter)
            needs = frozenset((chapter, *e.needs))
            yield Check(f"{chapter}/explore/{e.name}", chapter, needs, run, any_of=tuple(map(frozenset, e.any_of)))


def _explore(under_test: AdapterUnderTest, exploration: Exploration, counted_as: str) -> None:
    number = exploration.number(under_test.traces)
    under_test.explore(exploration.drawn(under_test.adapter.chapters), counted_as, number)
