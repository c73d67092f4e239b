"""The profile `mem`: worked examples, covers, exploration."""

from __future__ import annotations

import pytest

from kvconform.bench import Bench
from kvconform.strategies import mem
from kvconform.suite import common
from kvconform.vectors import Cover
from kvspec.examples import Example


@pytest.mark.parametrize("worked", common.clause_examples("mem"))
def test_example(bench: Bench, worked: Example) -> None:
    common.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", common.covers("mem"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    common.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("cache", common.caches("mem"))
def test_explore(bench: Bench, cache: str) -> None:
    common.explore_drawn(bench, "mem", mem.explored(cache))
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
    common.explore_drawn(bench, "mem", mem.explored(kind))
    bench.verdict()
