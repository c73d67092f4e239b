"""The chapter `draft`: worked examples, covers, laws, exploration."""

from __future__ import annotations

import pytest

from kvconform.generate.strategies import draft
from kvconform.laws.law import Law
from kvconform.runner.under_test import Bench
from kvconform.suite import checks
from kvconform.vectors import Cover
from kvspec.reading.examples import Example


@pytest.mark.parametrize("worked", checks.clause_examples("draft"))
def test_example(bench: Bench, worked: Example) -> None:
    checks.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", checks.covers("draft"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    checks.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("stated", checks.chapter_laws("draft"))
def test_law(bench: Bench, stated: Law) -> None:
    checks.law(bench, stated)
    bench.verdict()


@pytest.mark.kv_needs("growing", "ring", "draft")
def test_explore(bench: Bench) -> None:
    checks.explore_drawn(bench, "draft", draft.explored())
    bench.verdict()


@pytest.mark.kv_needs("growing", "ring", "draft", "mask", "snapshot")
def test_explore_everything(bench: Bench) -> None:
    """Masks and snapshots among rounds: most real bugs lie between two features."""
    checks.explore_drawn(bench, "draft", draft.explored(draft.EVERYTHING))
    bench.verdict()
