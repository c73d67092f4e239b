"""The profile `page`: worked examples, covers, laws, exploration; with attention where that is declared."""

from __future__ import annotations

import pytest

from kvconform.bench import Bench
from kvconform.laws import Law
from kvconform.strategies import page
from kvconform.suite import common
from kvconform.vectors import Cover
from kvspec.examples import Example


@pytest.mark.parametrize("worked", common.clause_examples("page"))
def test_example(bench: Bench, worked: Example) -> None:
    common.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", common.covers("page"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    common.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("stated", common.profile_laws("page"))
def test_law(bench: Bench, stated: Law) -> None:
    common.law(bench, stated)
    bench.verdict()


@pytest.mark.kv_needs("page")
def test_explore(bench: Bench) -> None:
    common.explore_drawn(bench, "page", page.explored())
    bench.verdict()


@pytest.mark.kv_needs("page", "attention")
def test_explore_attending(bench: Bench) -> None:
    common.explore_drawn(bench, "page", page.explored(more=("attend",) * 5))
    bench.verdict()
