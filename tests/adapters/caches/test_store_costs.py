"""What the store costs on devices: launches and bytes, and memory that ends."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from adapters.caches.test_store import CONFIG, on_device, opened, rows
from kvgpu.adapter import Caches
from kvgpu.caches.store import Store
from kvgpu.memory.buffers import Workspace
from kvspec.contract import Pair
from kvspec.geometry import Array
from support.device.devices import ADAPTERS, NAMES, Scarce, adapter


@pytest.fixture(params=NAMES)
def caches(request: pytest.FixtureRequest) -> Caches:
    return ADAPTERS[request.param]()


class Counted:
    """What the meter counts meanwhile."""

    def __init__(self, caches: Caches) -> None:
        self.meter = caches.runtime.meter

    def __enter__(self) -> Counted:
        gc.collect()
        self.before = self.meter.reading()
        return self

    def __exit__(self, *_: object) -> None:
        self.found = self.meter.since(self.before)


def counted(caches: Caches, work: Callable[[], object]) -> dict[str, int]:
    """What one piece of work counts."""
    with Counted(caches) as count:
        work()
    return count.found


def test_a_decode_of_device_rows_is_one_launch_for_all_layers_and_nothing_else(caches: Caches) -> None:
    store, moved = opened(caches), 3 * CONFIG.row_bytes
    one, two = (caches.place(*rows(n)) for n in (1, 2))
    for _ in range(3):
        assert counted(caches, lambda: store.append(*one)) == {"launches": 1, "device_to_device": moved}
    assert counted(caches, lambda: store.append(*two)) == {"launches": 2, "device_to_device": 2 * moved}


@pytest.mark.parametrize("do", ["rollback", "reset", "set_length"])
def test_a_length_costs_one_launch(caches: Caches, do: str) -> None:
    store = opened(caches)
    store.append(*rows(5))
    arguments = {"rollback": (2,), "reset": (), "set_length": (1, 3)}[do]
    assert counted(caches, lambda: getattr(store, do)(*arguments)) == {"launches": 1}


def test_a_refused_append_launches_nothing(caches: Caches) -> None:
    store = opened(caches)
    store.append(*rows(5))
    with pytest.raises(Exception, match="room for 6"):
        store.append(*caches.place(*rows(2)))
    with Counted(caches) as count, pytest.raises(Exception, match="room for 6"):
        store.append(*rows(2))
    assert count.found == {}


def test_only_what_is_asked_for_crosses_to_the_host(caches: Caches) -> None:
    store = opened(caches)
    store.append(*rows(2))
    store.append(*rows(1, layers=1), 2)
    found = counted(caches, store.save)
    assert found == {"device_to_host": 7 * CONFIG.row_bytes, "synchronisations": 4}
    row = CONFIG.k_dim * 2
    assert counted(caches, lambda: store.fingerprint(1)) == {"device_to_host": row, "synchronisations": 1}


OTHER = CONFIG.changed(kv_heads=3, layers=2)
WORK: dict[str, tuple[int, Callable[[Store], object]]] = {
    "init": (2, lambda store: store.init(OTHER)),
    "append": (1, lambda store: store.append(*rows(2))),
    "load": (1, lambda store: store.load([Pair(k, v) for k, v in zip(*rows(5), strict=True)])),
    "zero": (0, lambda store: store.zero()),
    "init again": (0, lambda store: store.init(CONFIG.changed(step=1))),
}
"""How many allocations each makes with no scratch space at hand, and what it does."""


@pytest.mark.parametrize("name", WORK)
def test_the_nth_allocation_fails_and_nothing_has_changed(name: str) -> None:
    wanted, work = WORK[name]
    for nth in range(wanted + 1):
        assert _fails(work, nth) == (nth < wanted)


def _fails(work: Callable[[Store], object], nth: int) -> bool:
    """Whether it ran out of memory; if so, all is as it was, and goes on."""
    scarce = Scarce(adapter().runtime)
    store = opened(Caches("scarce", scarce, checks=True))
    store.append(*rows(2))
    store.space = store.layers.space = Workspace(scarce, checks=True)
    before, scarce.left = _state(store), nth
    if _done(work, store):
        return False
    scarce.left = 1 << 30
    assert _state(store) == before
    store.append(*rows(1, seed=5))
    assert store.read(2).keys[:, 2:].tobytes() == rows(1, seed=5).keys[2].tobytes()
    return True


def _done(work: Callable[[Any], object], on: Any) -> bool:
    """Whether there was memory enough."""
    try:
        work(on)
    except MemoryError:
        return False
    return True


def _state(store: Store) -> Any:
    read = [a.tobytes() for layer in range(3) for a in store.read(layer)]
    gc.collect()
    return store.config, store.lengths(), on_device(store), read, store.space.runtime.meter.live_bytes


def test_memory_is_given_back_when_the_geometry_changes(caches: Caches) -> None:
    store = opened(caches)
    held, blocks = [store.layers.rows.block, store.layers.lengths], caches.runtime.meter.live_bytes
    store.init(OTHER)
    store.init(CONFIG)
    gc.collect()
    assert [b.handle for b in held] == [None, None]
    assert caches.runtime.meter.live_bytes == blocks


def test_opening_fails_whole(caches: Caches) -> None:
    for nth in itertools.count():
        scarce = Scarce(caches.runtime)
        scarce.left, before = nth, _live(caches)
        if _done(lambda other: opened(other), Caches("scarce", scarce)):
            break
        assert _live(caches) == before
    assert nth == 2


def _live(caches: Caches) -> int:
    gc.collect()
    return caches.runtime.meter.live_bytes


def test_the_host_is_not_asked_for_more_than_the_longest_layer_when_it_loads(caches: Caches) -> None:
    store = opened(caches)
    saved = [Pair(k[:, : 1 + layer], v[:, : 1 + layer]) for layer, (k, v) in enumerate(zip(*rows(3), strict=True))]
    store.load(saved)
    found = counted(caches, lambda: store.load(saved))
    assert found["host_to_device"] == 3 * 3 * CONFIG.row_bytes + 3 * 8
    assert found["launches"] == 3
    assert all(_same(store.read(layer), pair) for layer, pair in enumerate(saved))


def _same(found: Pair, wanted: Pair) -> bool:
    def form(a: Array) -> object:
        return a.shape, a.dtype, a.tobytes()

    return all(form(a) == form(b) for a, b in zip(found, wanted, strict=True))
