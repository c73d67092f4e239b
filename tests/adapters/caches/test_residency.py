"""What makes the cache a device's: what crosses to the host, what is allocated, when it is given back."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from kvgpu.adapter import Caches
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Config
from kvspec.masks import Explicit
from support.device.devices import adapter

pytestmark = pytest.mark.usefixtures("each_runtime")
CONFIG = Config(batch=2, window=4, step=4)
KINDS = ("growing", "ring")


def _rows(n: int, config: Config = CONFIG) -> Pair:
    return Pair(*(np.full(config.shape(kind, n), n, DTYPES[config.dtype]) for kind in ("k", "v")))


class Metered:
    """What the meter says of the lines inside."""

    def __enter__(self) -> Metered:
        gc.collect()
        self.before = adapter().runtime.meter.reading()
        return self

    def __exit__(self, *_: object) -> None:
        self.found = adapter().runtime.meter.since(self.before)


@pytest.mark.parametrize("kind", KINDS)
def test_steady_decode_of_device_rows_does_nothing_but_its_launch(kind: str) -> None:
    cache: Any = Caches("bare", adapter().runtime, checks=False).open(kind, CONFIG)
    cache.append(*_rows(9))
    cache.append(*_rows(1))
    placed = adapter().place(*_rows(1))
    for _ in range(2 if kind == "growing" else 20):
        with Metered() as meter:
            cache.append(*placed)
        assert meter.found == {"launches": 1, "device_to_device": CONFIG.row_bytes}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_placed_may_be_forgotten_at_once(kind: str) -> None:
    cache: Any = adapter().open(kind, CONFIG)
    with Metered() as meter:
        placed = adapter().place(*_rows(3))
        cache.append(*placed)
        del placed
    assert meter.found["frees"] == 1
    assert cache.read("state").values.tobytes() == _rows(3).values.tobytes()


def test_keys_and_values_must_be_in_one_place() -> None:
    cache: Any = adapter().open("growing", CONFIG)
    here, there, host = adapter().place(*_rows(2)), adapter(wide=True).place(*_rows(2)), _rows(2)
    for keys, values in ((here[0], host.values), (host.keys, here[1]), there, (here[0], there[1])):
        with Metered() as meter, pytest.raises(ValueError, match="both on the device of this cache"):
            cache.append(keys, values)
        assert meter.found == {} and cache.lengths().offset == 0


def test_a_part_of_placed_rows_is_where_they_are() -> None:
    rows = np.arange(24, dtype=np.float16).reshape(4, 3, 2)
    buffer: Any = adapter().open("copy", Config(capacity=2, layout="token", kv_heads=3, k_dim=2, v_dim=2))
    placed = adapter().place(rows, rows)
    with Metered() as meter:
        buffer.copy(*placed, 4, 0, sliding=True)
    assert "host_to_device" not in meter.found
    assert [a.tolist() for a in buffer.read("state")] == [rows[2:].tolist()] * 2


def test_a_read_downloads_only_the_rows_asked_for() -> None:
    cache: Any = Caches("bare", adapter().runtime, checks=False).open("ring", CONFIG)
    for n in (9, 1, 1):
        cache.append(*_rows(n))
    cache.read("view")
    for what, rows, launches in (("state", 4, 0), ("history", 4, 0), ("view", 3, 1)):
        with Metered() as meter:
            cache.read(what)
        assert meter.found.get("device_to_host") == rows * CONFIG.row_bytes
        assert meter.found.get("launches", 0) == launches and "allocations" not in meter.found


def test_the_buffer_of_a_ring_stays_where_it_is_until_a_longer_prefill() -> None:
    cache: Any = adapter().open("ring", CONFIG)
    cache.append(*_rows(5))
    block = cache.store.rows.block
    for n in (1, 1, 5, 1, 3, 2, 1, 1, 1, 1, 5, 0, 4):
        cache.append(*_rows(n))
        assert cache.store.rows.block is block
    cache.append(*_rows(6))
    assert cache.store.rows.block is not block and block.handle is None


@pytest.mark.parametrize("kind", KINDS)
def test_all_memory_comes_back(kind: str) -> None:
    cache: Any = adapter().open(kind, CONFIG)
    cache.append(*_rows(3))
    with Metered() as whole:
        snapshot = cache.snapshot(0)
        assert snapshot.nbytes == 3 * CONFIG.row_bytes
        assert whole.before["live_bytes"] + snapshot.nbytes < adapter().runtime.meter.live_bytes
        parent, child = cache.split(snapshot, 2)
        merged = cache.merge(parent, child)
        assert merged.nbytes == 3 * CONFIG.row_bytes and snapshot.nbytes == 0
        merged.close()
        assert merged.nbytes == 0
    assert "live_bytes" not in whole.found and whole.found["allocations"] == whole.found["frees"]
    with Metered() as meter:
        cache.free()
    assert meter.found["live_bytes"] < 0 and meter.found["frees"] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_that_is_forgotten_gives_its_memory_back(kind: str) -> None:
    gc.collect()  # what other tests left is not to be counted here
    with Metered() as meter:
        cache: Any = adapter().open(kind, CONFIG)
        cache.append(*_rows(3))
        kept = cache.snapshot(0)
        del cache, kept
        gc.collect()
    assert "live_bytes" not in meter.found and meter.found["allocations"] == meter.found["frees"]


def test_a_merge_of_rings_gives_the_parents_memory_back() -> None:
    cache: Any = adapter().open("ring", CONFIG)
    cache.append(*_rows(3))
    parent, child = cache.snapshot(0), cache.snapshot(0)
    with Metered() as meter:
        merged = cache.merge(parent, child)
    assert set(meter.found) == {"frees", "live_bytes"} and meter.found["live_bytes"] < -merged.nbytes


def test_an_append_uploads_its_rows_and_a_turned_mask_itself() -> None:
    cache: Any = adapter().open("ring", CONFIG)
    for n in (9, 1):
        with Metered() as meter:
            cache.append(*_rows(n))
        assert meter.found["host_to_device"] == n * CONFIG.row_bytes
    given = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
    with Metered() as meter:
        mask = cache.mask((Explicit(given),))
    assert mask.tolist() == [[[[3, 0, 1, 2]]]]
    assert (meter.found["host_to_device"], meter.found["device_to_host"]) == (16, 16)


def test_a_mask_is_the_callers_own() -> None:
    cache: Any = adapter().open("growing", CONFIG)
    cache.append(*_rows(2))
    given = np.ones((1, 1, 2, 2), bool)
    assert not np.shares_memory(cache.mask((Explicit(given),)), given)


def test_a_snapshot_from_another_device_is_refused() -> None:
    there: Any = adapter(wide=True).open("growing", CONFIG)
    there.append(*_rows(2))
    here: Any = adapter().open("growing", CONFIG)
    for foreign in (there.snapshot(0), object()):
        with pytest.raises(Refused) as e:
            here.restore(foreign, 1)
        assert e.value.clause == "SNAP-10"
