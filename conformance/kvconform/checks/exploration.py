"""Checks from exploration: traces that Hypothesis draws on larger configurations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from kvconform.checks.check import Check
from kvconform.generate.registry import explorations
from kvconform.runner.under_test import AdapterUnderTest


def checks() -> Iterator[Check]:
    """One for each exploration of each chapter."""
    for chapter, each in explorations().items():
        for e in each:
            run = partial(_explore, strategy=e.strategy, counted_as=e.counted_as or chapter)
            yield Check(f"{chapter}/explore/{e.name}", chapter, frozenset((chapter, *e.needs)), run)


def _explore(under_test: AdapterUnderTest, strategy: Callable[[], Any], counted_as: str) -> None:
    under_test.explore(strategy(), counted_as)
