"""The chapter `mask`: worked examples, covers, exploration."""

from __future__ import annotations

import pytest

from kvconform.generate.strategies import caches
from kvconform.runner.under_test import Bench
from kvconform.suite import checks
from kvconform.vectors import Cover
from kvspec.reading.examples import Example


@pytest.mark.parametrize("worked", checks.clause_examples("mask"))
def test_example(bench: Bench, worked: Example) -> None:
    checks.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", checks.covers("mask"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    checks.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("cache", checks.caches("mask"))
def test_explore(bench: Bench, cache: str) -> None:
    checks.explore(bench, cache, caches.MASKS)
    bench.verdict()
