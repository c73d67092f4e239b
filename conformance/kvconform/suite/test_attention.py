"""The profile `attention`: worked examples, covers, laws, exploration."""

from __future__ import annotations

import pytest

from kvconform.bench import Bench
from kvconform.laws import Law
from kvconform.strategies import attention
from kvconform.suite import common
from kvconform.vectors import Cover
from kvspec.examples import Example


@pytest.mark.parametrize("worked", common.clause_examples("attention"))
def test_example(bench: Bench, worked: Example) -> None:
    common.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", common.covers("attention"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    common.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("stated", common.profile_laws("attention"))
def test_law(bench: Bench, stated: Law) -> None:
    common.law(bench, stated)
    bench.verdict()


@pytest.mark.parametrize("cache", common.caches("attention"))
def test_explore(bench: Bench, cache: str) -> None:
    common.explore_drawn(bench, "attention", attention.explored(cache))
    bench.verdict()


@pytest.mark.kv_needs("store", "batch", "attention")
def test_explore_store(bench: Bench) -> None:
    common.explore_drawn(bench, "attention", attention.explored("store"))
    bench.verdict()
