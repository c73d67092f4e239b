"""Rounds of drafts of engines that have none: what is the caller's part, and what goes to the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kvadapters.update import UpdateCache
from kvspec.errors import Unsupported
from kvspec.geometry import Config
from support.engines import dialect_engines

ADAPTER = dialect_engines.rounds_kept


def opened(offset: int) -> UpdateCache:
    """A ring with so many rows."""
    cache = ADAPTER.open("ring", Config(window=2, kv_heads=1, k_dim=1, v_dim=1))
    cache.append(*rows(offset))
    return cache


def rows(n: int) -> tuple[Any, Any]:
    return (np.ones((1, 1, n, 1), np.float16),) * 2


def test_it_is_claimed_where_an_engine_drops_drafts() -> None:
    assert ADAPTER.describe()["chapters"]["draft"] == {"level": "visible", "without": ["tree"], "rounds": "rows"}
    assert "draft" not in dialect_engines.clamped_kept.describe()["chapters"]


def test_a_commit_drops_on_every_layer_what_is_not_kept() -> None:
    a, b = opened(1), opened(4)
    round_ = ADAPTER.speculate([a, None, b], False)
    round_.draft(0, *rows(3))
    round_.draft(2, *rows(3))
    assert [cache.lengths().offset for cache in (a, b)] == [4, 7]
    round_.commit(1)
    assert [cache.lengths().offset for cache in (a, b)] == [2, 5]


def test_layers_keep_equally_many_or_the_round_stays_open() -> None:
    a, b = opened(1), opened(1)
    round_ = ADAPTER.speculate([a, b], False)
    round_.draft(0, *rows(2))
    with pytest.raises(ValueError, match="would keep"):
        round_.commit(1)
    round_.abandon()
    assert [cache.lengths().offset for cache in (a, b)] == [1, 1]


@pytest.mark.parametrize("end", ["abandon", "commit"])
def test_what_has_ended_takes_nothing_more(end: str) -> None:
    round_ = ADAPTER.speculate([opened(1)], False)
    getattr(round_, end)(*[1] * (end == "commit"))
    with pytest.raises(ValueError, match="ended"):
        round_.draft(0, *rows(1))


def test_a_choice_without_branches_is_a_commit() -> None:
    cache = opened(1)
    round_ = ADAPTER.speculate([cache], False)
    round_.draft(0, *rows(3))
    with pytest.raises(ValueError, match="no draft"):
        round_.choose(3)
    round_.choose(1)
    assert cache.lengths().offset == 3


def test_a_cache_is_in_one_layer_and_no_round_is_isolated() -> None:
    cache = opened(1)
    with pytest.raises(ValueError, match="two layers"):
        ADAPTER.speculate([cache, cache], False)
    with pytest.raises(Unsupported):
        ADAPTER.speculate([cache], True)


def test_rounds_do_not_nest() -> None:
    a, b = opened(1), opened(1)
    first = ADAPTER.speculate([a], False)
    with pytest.raises(ValueError, match="another round"):
        ADAPTER.speculate([b, a], False)
    assert not b.drafting
    first.abandon()
    ADAPTER.speculate([b, a], False).commit(0)
