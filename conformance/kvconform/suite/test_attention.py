"""The chapter `attention`: worked examples, covers, laws, exploration."""

from __future__ import annotations

import pytest

from kvconform.generate.strategies import attention
from kvconform.laws.law import Law
from kvconform.runner.under_test import Bench
from kvconform.suite import checks
from kvconform.vectors import Cover
from kvspec.reading.examples import Example


@pytest.mark.parametrize("worked", checks.clause_examples("attention"))
def test_example(bench: Bench, worked: Example) -> None:
    checks.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", checks.covers("attention"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    checks.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("stated", checks.chapter_laws("attention"))
def test_law(bench: Bench, stated: Law) -> None:
    checks.law(bench, stated)
    bench.verdict()


@pytest.mark.parametrize("cache", checks.caches("attention"))
def test_explore(bench: Bench, cache: str) -> None:
    checks.explore_drawn(bench, "attention", attention.explored(cache))
    bench.verdict()


@pytest.mark.kv_needs("store", "batch", "attention")
def test_explore_store(bench: Bench) -> None:
    checks.explore_drawn(bench, "attention", attention.explored("store"))
    bench.verdict()
