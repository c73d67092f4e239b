"""The profile `mask`: worked examples, covers, exploration."""

from __future__ import annotations

import pytest

from kvconform.bench import Bench
from kvconform.strategies import draws
from kvconform.suite import common
from kvconform.vectors import Cover
from kvspec.examples import Example


@pytest.mark.parametrize("worked", common.clause_examples("mask"))
def test_example(bench: Bench, worked: Example) -> None:
    common.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", common.covers("mask"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    common.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("cache", common.caches("mask"))
def test_explore(bench: Bench, cache: str) -> None:
    common.explore(bench, cache, draws.MASKS)
    bench.verdict()
