"""The check of honesty: an adapter refuses everything that it does not claim."""

from __future__ import annotations

from collections.abc import Iterator

from kvconform.checks.check import Check
from kvconform.judge import honesty
from kvconform.runner.under_test import AdapterUnderTest

CHAPTER = "honesty"


def checks() -> Iterator[Check]:
    """One check of everything that is not claimed."""
    yield Check("honesty", CHAPTER, frozenset(), judge)


def judge(under_test: AdapterUnderTest) -> None:
    """Try everything that the adapter does not claim."""
    under_test.tally.judged += 1
    undeclared = honesty.undeclared(under_test.adapter, under_test.worker)
    under_test.tally.problems += [f"adapter: {message}" for message in undeclared]
