"""The chapter `snapshot`: worked examples, covers, laws, exploration."""

from __future__ import annotations

import pytest

from kvconform.generate.strategies import caches
from kvconform.laws.law import Law
from kvconform.runner.under_test import Bench
from kvconform.suite import checks
from kvconform.vectors import Cover
from kvspec.reading.examples import Example


@pytest.mark.parametrize("worked", checks.clause_examples("snapshot"))
def test_example(bench: Bench, worked: Example) -> None:
    checks.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", checks.covers("snapshot"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    checks.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("stated", checks.chapter_laws("snapshot"))
def test_law(bench: Bench, stated: Law) -> None:
    checks.law(bench, stated)
    bench.verdict()


@pytest.mark.parametrize("cache", checks.caches("snapshot"))
def test_explore(bench: Bench, cache: str) -> None:
    checks.explore(bench, cache, caches.SNAPSHOTS)
    bench.verdict()


@pytest.mark.parametrize("cache", checks.caches("snapshot"))
@pytest.mark.kv_needs("mask")
def test_explore_everything(bench: Bench, cache: str) -> None:
    """All chapters at once: most real bugs lie between two features."""
    checks.explore(bench, cache, caches.EVERYTHING)
    bench.verdict()
