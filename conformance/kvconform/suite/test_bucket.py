"""The profile `bucket`: worked examples, covers, laws, exploration."""

from __future__ import annotations

import pytest

from kvconform.bench import Bench
from kvconform.laws import Law
from kvconform.strategies import bucket
from kvconform.suite import common
from kvconform.vectors import Cover
from kvspec.examples import Example


@pytest.mark.parametrize("worked", common.clause_examples("bucket"))
def test_example(bench: Bench, worked: Example) -> None:
    common.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", common.covers("bucket"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    common.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("stated", common.profile_laws("bucket"))
def test_law(bench: Bench, stated: Law) -> None:
    common.law(bench, stated)
    bench.verdict()


@pytest.mark.kv_needs("bucket")
def test_explore(bench: Bench) -> None:
    common.explore_drawn(bench, "bucket", bucket.explored())
    bench.verdict()
