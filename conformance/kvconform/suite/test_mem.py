"""The chapter `mem`: worked examples, covers, exploration."""

from __future__ import annotations

import pytest

from kvconform.generate.strategies import mem
from kvconform.runner.under_test import Bench
from kvconform.suite import checks
from kvconform.vectors import Cover
from kvspec.reading.examples import Example


@pytest.mark.parametrize("worked", checks.clause_examples("mem"))
def test_example(bench: Bench, worked: Example) -> None:
    checks.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", checks.covers("mem"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    checks.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("cache", checks.caches("mem"))
def test_explore(bench: Bench, cache: str) -> None:
    checks.explore_drawn(bench, "mem", mem.explored(cache))
    bench.verdict()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("store", marks=pytest.mark.kv_needs("store", "mem")),
        pytest.param("batch", marks=pytest.mark.kv_needs("store", "batch", "mem")),
    ],
)
def test_explore_stores(bench: Bench, kind: str) -> None:
    """What is preallocated, and the questions of what fits."""
    checks.explore_drawn(bench, "mem", mem.explored(kind))
    bench.verdict()
