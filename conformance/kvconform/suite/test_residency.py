"""The chapter `residency`: worked examples, covers, exploration."""

from __future__ import annotations

import pytest

from kvconform.generate.strategies import residency
from kvconform.runner.under_test import Bench
from kvconform.suite import checks
from kvconform.vectors import Cover
from kvspec.reading.examples import Example


@pytest.mark.parametrize("worked", checks.clause_examples("residency"))
def test_example(bench: Bench, worked: Example) -> None:
    checks.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", checks.covers("residency"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    checks.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("cache", checks.caches("residency"))
def test_explore(bench: Bench, cache: str) -> None:
    checks.explore_drawn(bench, "residency", residency.explored(cache))
    bench.verdict()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("copy", marks=pytest.mark.kv_needs("copy", "residency")),
        pytest.param("bucket", marks=pytest.mark.kv_needs("bucket", "residency")),
        pytest.param("store", marks=pytest.mark.kv_needs("store", "residency")),
        pytest.param("page", marks=pytest.mark.kv_needs("page", "residency")),
        pytest.param("batch", marks=pytest.mark.kv_needs("store", "batch", "residency")),
        pytest.param(
            "attention", marks=pytest.mark.kv_needs("growing", "ring", "store", "batch", "attention", "residency")
        ),
    ],
)
def test_explore_others(bench: Bench, kind: str) -> None:
    """Buffers, stores and batches; attention."""
    checks.explore_drawn(bench, "residency", residency.explored(kind))
    bench.verdict()
