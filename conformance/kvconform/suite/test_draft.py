"""The profile `draft`: worked examples, covers, laws, exploration."""

from __future__ import annotations

import pytest

from kvconform.bench import Bench
from kvconform.laws import Law
from kvconform.strategies import draft
from kvconform.suite import common
from kvconform.vectors import Cover
from kvspec.examples import Example


@pytest.mark.parametrize("worked", common.clause_examples("draft"))
def test_example(bench: Bench, worked: Example) -> None:
    common.example(bench, worked)
    bench.verdict()


@pytest.mark.parametrize("frozen", common.covers("draft"))
def test_cover(bench: Bench, frozen: Cover) -> None:
    common.cover(bench, frozen)
    bench.verdict()


@pytest.mark.parametrize("stated", common.profile_laws("draft"))
def test_law(bench: Bench, stated: Law) -> None:
    common.law(bench, stated)
    bench.verdict()


@pytest.mark.kv_needs("growing", "ring", "draft")
def test_explore(bench: Bench) -> None:
    common.explore_drawn(bench, "draft", draft.explored())
    bench.verdict()


@pytest.mark.kv_needs("growing", "ring", "draft", "mask", "snapshot")
def test_explore_everything(bench: Bench) -> None:
    """Masks and snapshots among rounds: most real bugs lie between two features."""
    common.explore_drawn(bench, "draft", draft.explored(draft.EVERYTHING))
    bench.verdict()
