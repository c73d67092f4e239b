"""The profile `snapshot`: worked examples, covers, laws, exploration."""

from __future__ import annotations

import pytest

from kvconform.bench import Bench
from kvconform.laws import Law
from kvconform.strategies import draws
from kvconform.suite import common
from kvconform.vectors import Cover
from kvspec.examples import Example


@pytest.mark.parametrize("worked", common.clause_examples("snapshot"))
def test_example(bench: Bench, worked: Example) -> None:
    common.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", common.covers("snapshot"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    common.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("stated", common.profile_laws("snapshot"))
def test_law(bench: Bench, stated: Law) -> None:
    common.law(bench, stated)
    bench.verdict()


@pytest.mark.parametrize("cache", common.caches("snapshot"))
def test_explore(bench: Bench, cache: str) -> None:
    common.explore(bench, cache, draws.SNAPSHOTS)
    bench.verdict()


@pytest.mark.parametrize("cache", common.caches("snapshot"))
@pytest.mark.kv_needs("mask")
def test_explore_everything(bench: Bench, cache: str) -> None:
    """All profiles at once: most real bugs lie between two features."""
    common.explore(bench, cache, draws.EVERYTHING)
    bench.verdict()
