"""Drafts of layers on a device: the rows of each call in a block of their own, one gather for what is kept."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from kvgpu.adapter import Caches
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Config
from support.device.device_costs import cost, raises
from support.device.devices import Scarce, adapter

OF = "full,window:2,state"


def opened(on: Caches | None = None) -> Any:
    """A fresh cache of three layers, one of them a state."""
    return (on or adapter()).open("layers", Config(of=OF, layers=3, kv_heads=2, k_dim=5, v_dim=7, step=4))


def rows(n: int, seed: int = 0) -> Pair:
    """Rows of whole numbers for three layers."""
    random, config = np.random.default_rng((n, seed)), Config(batch=3, kv_heads=2, k_dim=5, v_dim=7)
    return Pair(*(random.integers(-8, 9, config.shape(kind, n)).astype(DTYPES["f16"]) for kind in "kv"))


def at(source: Pair, way: list[int]) -> Pair:
    """The rows of these drafts, in this order."""
    return Pair(*(a[:, :, way] for a in source))


def everything(cache: Any) -> list[Any]:
    """What the next query sees of each layer, and the state, as bytes."""
    cache.append(*rows(1, 9))
    seen = [[a[:, :, shown].tobytes() for a in pair] for pair, shown in _seen(cache)]
    return [cache.lengths().offset, seen, {layer: state.tobytes() for layer, state in cache.states().items()}]


def _seen(cache: Any) -> list[tuple[Pair, Any]]:
    mask, histories = cache.mask(), cache.histories()
    return [(pair, np.flatnonzero(mask[i, 0, 0, : pair.keys.shape[2]])) for i, pair in enumerate(histories)]


@pytest.mark.usefixtures("each_runtime")
@pytest.mark.parametrize(("draft", "way"), [(4, [1, 2, 4]), (3, [0, 3]), (1, [1]), (-1, [])])
def test_a_draft_that_is_settled_for_is_as_an_append_of_its_way(draft: int, way: list[int]) -> None:
    drafted, appended, source = opened(), opened(), rows(5, 1)
    for cache in (drafted, appended):
        cache.append(*rows(3))
    drafted.branch(*at(source, [0, 1]), [-1, -1])
    drafted.branch(*at(source, [2, 3, 4]), [1, 0, 2])
    drafted.settle(draft)
    appended.append(*at(source, way))
    assert everything(drafted) == everything(appended)


@pytest.mark.usefixtures("each_runtime")
def test_a_branch_writes_its_own_rows_alone_and_a_settle_hands_nothing_in() -> None:
    cache, row = opened(), 3 * 2 * (5 + 7) * 2
    cache.append(*rows(2))
    for n in (4, 1):
        found = cost(cache, partial(cache.branch, *rows(n, 1)))
        assert found["device_to_device"] == n * row
    found = cost(cache, lambda: cache.settle(4))
    assert not {"host_to_device", "device_to_host"} & {name for name, n in found.items() if n}
    assert cache.lengths().offset == 7


def test_drafts_give_their_memory_back() -> None:
    cache = opened()
    cache.append(*rows(2))
    before = cache.held()
    ends: dict[str, Any] = {
        "settle": lambda: cache.settle(-1),
        "rewind": lambda: cache.rewind(2),
        "restore": lambda: cache.restore(saved, 2),
    }
    saved = cache.snapshot(0)
    for name, end in ends.items():
        cache.branch(*rows(3, 1), [-1, -1, 0])
        assert cache.held() > before, name
        end()
        assert cache.held() == before, name


def test_a_settle_for_which_memory_runs_out_leaves_the_cache_and_the_drafts() -> None:
    scarce = Scarce(adapter().runtime)
    cache, plain, source = opened(Caches("scarce", scarce)), opened(), rows(3, 1)
    for one in (cache, plain):
        one.append(*rows(4))
    cache.branch(*source, [-1, -1, 1])
    for left in (0, 1):
        scarce.left = left
        assert raises(lambda: cache.settle(2))
        assert cache.lengths().offset == 4
    scarce.left = 1 << 30
    cache.settle(2)
    plain.append(*at(source, [1, 2]))
    assert everything(cache) == everything(plain)


def test_what_hangs_on_nothing_is_refused_and_the_drafts_stay() -> None:
    cache = opened()
    cache.branch(*rows(2), [-1, 0])
    for on in ([2], [-2], [0, 1]):
        with pytest.raises(Refused, match="hangs on"):
            cache.branch(*rows(1), on)
    for draft in (2, -2):
        with pytest.raises(Refused, match="settle for draft"):
            cache.settle(draft)
    cache.settle(1)
    assert cache.lengths().offset == 2
