"""The chapter `page`: worked examples, covers, laws, exploration; with attention where that is declared."""

from __future__ import annotations

import pytest

from kvconform.generate.strategies import page
from kvconform.laws.law import Law
from kvconform.runner.under_test import Bench
from kvconform.suite import checks
from kvconform.vectors import Cover
from kvspec.reading.examples import Example


@pytest.mark.parametrize("worked", checks.clause_examples("page"))
def test_example(bench: Bench, worked: Example) -> None:
    checks.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", checks.covers("page"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    checks.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("stated", checks.chapter_laws("page"))
def test_law(bench: Bench, stated: Law) -> None:
    checks.law(bench, stated)
    bench.verdict()


@pytest.mark.kv_needs("page")
def test_explore(bench: Bench) -> None:
    checks.explore_drawn(bench, "page", page.explored())
    bench.verdict()


@pytest.mark.kv_needs("page", "attention")
def test_explore_attending(bench: Bench) -> None:
    checks.explore_drawn(bench, "page", page.explored(more=("attend",) * 5))
    bench.verdict()
