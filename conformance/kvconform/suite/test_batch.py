"""The chapter `batch`: worked examples, covers, laws, exploration."""

from __future__ import annotations

import pytest

from kvconform.generate.strategies import batch
from kvconform.laws.law import Law
from kvconform.runner.under_test import Bench
from kvconform.suite import checks
from kvconform.vectors import Cover
from kvspec.reading.examples import Example


@pytest.mark.parametrize("worked", checks.clause_examples("batch"))
def test_example(bench: Bench, worked: Example) -> None:
    checks.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", checks.covers("batch"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    checks.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("stated", checks.chapter_laws("batch"))
def test_law(bench: Bench, stated: Law) -> None:
    checks.law(bench, stated)
    bench.verdict()


@pytest.mark.kv_needs("store", "batch")
def test_explore(bench: Bench) -> None:
    checks.explore_drawn(bench, "store", batch.explored())
    bench.verdict()
