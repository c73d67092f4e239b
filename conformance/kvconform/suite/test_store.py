"""The chapter `store`: worked examples, covers, laws, exploration."""

from __future__ import annotations

import pytest

from kvconform.generate.strategies import store
from kvconform.laws.law import Law
from kvconform.runner.under_test import Bench
from kvconform.suite import checks
from kvconform.vectors import Cover
from kvspec.reading.examples import Example


@pytest.mark.parametrize("worked", checks.clause_examples("store"))
def test_example(bench: Bench, worked: Example) -> None:
    checks.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", checks.covers("store"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    checks.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("stated", checks.chapter_laws("store"))
def test_law(bench: Bench, stated: Law) -> None:
    checks.law(bench, stated)
    bench.verdict()


@pytest.mark.kv_needs("store")
def test_explore(bench: Bench) -> None:
    checks.explore_drawn(bench, "store", store.explored())
    bench.verdict()
