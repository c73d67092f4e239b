"""The profile `batch`: worked examples, covers, laws, exploration."""

from __future__ import annotations

import pytest

from kvconform.bench import Bench
from kvconform.laws import Law
from kvconform.strategies import batch
from kvconform.suite import common
from kvconform.vectors import Cover
from kvspec.examples import Example


@pytest.mark.parametrize("worked", common.clause_examples("batch"))
def test_example(bench: Bench, worked: Example) -> None:
    common.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", common.covers("batch"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    common.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("stated", common.profile_laws("batch"))
def test_law(bench: Bench, stated: Law) -> None:
    common.law(bench, stated)
    bench.verdict()


@pytest.mark.kv_needs("store", "batch")
def test_explore(bench: Bench) -> None:
    common.explore_drawn(bench, "store", batch.explored())
    bench.verdict()
