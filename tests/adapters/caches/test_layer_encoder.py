"""Rows of an encoder on a device: written once, never moved, and one block for a cache and its snapshots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kvgpu.adapter import Caches
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Config
from support.device.device_costs import cost, raises
from support.device.devices import Scarce, adapter

OF = "cross,window:3,full,cross"


def opened(on: Caches | None = None) -> Any:
    """A fresh cache with two layers of tokens and two of an encoder's rows."""
    return (on or adapter()).open("layers", Config(of=OF, layers=2, kv_heads=3, k_dim=5, v_dim=7, step=4))


def rows(n: int, seed: int = 0) -> Pair:
    """Rows of arbitrary bits for two layers."""
    random, config = np.random.default_rng((n, seed)), Config(batch=2, kv_heads=3, k_dim=5, v_dim=7)
    sizes = (config.shape(kind, n) for kind in "kv")
    return Pair(*(random.integers(0, 256, (*s[:3], 2 * s[3]), np.uint8).view(DTYPES["f16"]) for s in sizes))


def encoder(cache: Any) -> list[list[bytes]]:
    """The rows that the two layers show of an encoder, as bytes."""
    shown = cache.histories()
    return [[a.tobytes() for a in shown[layer]] for layer in (0, 3)]


def given(of: Pair) -> list[list[bytes]]:
    """The same of what was handed in."""
    return [[a[layer].tobytes() for a in of] for layer in (0, 1)]


@pytest.mark.usefixtures("each_runtime")
def test_each_layer_shows_its_own_rows_to_every_query() -> None:
    cache, source = opened(), rows(5)
    cache.encode(*source)
    for n in (1, 3, 2):
        cache.append(*rows(n, 1))
        mask = cache.mask()
        assert encoder(cache) == given(source)
        assert mask[[0, 3], 0, :, :5].all()
        assert not mask[[0, 3], 0, :, 5:].any()


@pytest.mark.usefixtures("each_runtime")
def test_an_encode_is_prepared_and_written_in_two_launches_and_an_append_moves_none_of_it() -> None:
    config = Config(of="window:3,full", layers=2, kv_heads=3, k_dim=5, v_dim=7, step=4)
    on: Any = adapter()
    plain: Any = adapter().open("layers", config)
    cache, there, new = opened(on), on.place(*rows(6)), on.place(*rows(1, 1))
    found = cost(cache, lambda: cache.encode(*there))
    assert (found["launches"], found["allocations"]) == (2, 1)
    assert found["device_to_device"] == 6 * cache.encoder.geometry.row_bytes
    cache.append(*rows(2, 2))
    plain.append(*rows(2, 2))
    mine = adapter().place(*rows(1, 1))
    assert cost(cache, lambda: cache.append(*new)) == cost(plain, lambda: plain.append(*mine))


def test_snapshots_share_the_rows_and_the_last_owner_gives_them_back() -> None:
    on = adapter()
    cache, other, source = opened(on), opened(on), rows(5)
    cache.encode(*source)
    cache.append(*rows(2, 1))
    saved = cache.snapshot(0)
    block = cache.encoder.shared
    cache.free()
    assert block.owners == 1
    other.restore(saved, 1)
    saved.close()
    other.append(*rows(1, 2))
    assert encoder(other) == given(source)
    assert other.encoder.shared is block
    assert block.owners == 1
    other.free()
    assert block.owners == 0
    assert other.held() == 0


def test_an_encode_for_which_memory_runs_out_changes_nothing() -> None:
    scarce = Scarce(adapter().runtime)
    cache, first = opened(Caches("scarce", scarce)), rows(3)
    cache.append(*rows(2, 1))
    cache.space._blocks.clear()
    for left in (0, 1):
        scarce.left = left
        assert raises(lambda: cache.encode(*first))
    scarce.left = 1 << 30
    cache.append(*rows(1, 2))
    assert encoder(cache) == [[b"", b""], [b"", b""]]
    cache.encode(*first)
    with pytest.raises(Refused, match="3 rows of an encoder"):
        cache.encode(*rows(2, 3))
    cache.append(*rows(1, 4))
    assert encoder(cache) == given(first)
