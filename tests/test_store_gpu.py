"""The store on devices, what the suite cannot see of it: lengths there, captured decodes, memory that ends."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from local import LocalBench
from test_gpu_equivalence import adapter
from test_gpu_scarcity import Scarce

from kvadapters.gpu.adapter import Caches
from kvadapters.gpu.buffers import Workspace
from kvadapters.gpu.cuda_cpu import CudaCPURuntime
from kvadapters.gpu.layers import Layers
from kvadapters.gpu.places import Place
from kvadapters.gpu.store import Store
from kvconform.strategies.store import explored
from kvconform.suite import common
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config
from kvspec.notation import sentence
from kvspec.trace import Trace

CONFIG = Config(layers=3, max_len=6)
SHAPES = [
    Config(layers=2, max_len=5, kv_heads=h, k_dim=k, v_dim=v) for h, k, v in ((1, 8, 8), (3, 5, 3), (2, 6, 16))
]


@cache
def on_cuda_cpu() -> Caches:
    return Caches("cuda-cpu", CudaCPURuntime(), checks=True)


ADAPTERS: dict[str, Callable[[], Caches]] = {
    "opencl": adapter,
    "opencl, a word an item": lambda: adapter(wide=True),
    "cuda-cpu": on_cuda_cpu,
}


@pytest.fixture(params=ADAPTERS)
def caches(request: pytest.FixtureRequest) -> Caches:
    return ADAPTERS[request.param]()


class _Seeded:
    seed = 7


@cache
def drawn() -> tuple[Trace, ...]:
    return tuple(common._drawn(_Seeded(), explored(), 80))  # type: ignore[arg-type]


def rows(n: int, config: Config = CONFIG, layers: int | None = None, seed: int = 0) -> Pair:
    """Random rows for some layers, or all."""
    random, count = np.random.default_rng(seed), layers or config.layers or 1
    shapes = (config.changed(batch=count).shape(kind, n) for kind in "kv")
    return Pair(*(random.standard_normal(s).astype(DTYPES[config.dtype]) for s in shapes))


def opened(caches: Caches, config: Config = CONFIG) -> Store:
    """A store."""
    store: Any = caches.open("store", config)
    return store  # type: ignore[no-any-return]


def on_device(store: Store) -> list[int]:
    """The lengths that the device has."""
    block = store.layers.lengths
    found: list[int] = store.space.runtime.download(block, 0, block.nbytes).view(np.int64)[0].tolist()
    return found


def test_random_operations_do_what_the_reference_does(caches: Caches) -> None:
    bench = LocalBench(caches)
    for trace in drawn():
        seen = bench.run(trace)
        assert not seen.failed, (sentence(trace), seen.differences)


def test_the_device_has_the_lengths_that_the_host_knows(caches: Caches) -> None:
    store, pick = opened(caches), np.random.default_rng(3)
    operations: list[Callable[[], object]] = [
        lambda: store.append(*rows(1)),
        lambda: store.append(*rows(2)),
        lambda: store.append(*rows(2, layers=1), int(pick.integers(3))),
        lambda: store.append(*rows(1, layers=1), int(pick.integers(3))),
        lambda: store.rollback(int(pick.integers(7))),
        lambda: store.set_length(int(pick.integers(3)), int(pick.integers(7))),
        store.reset,
        store.zero,
        lambda: store.load(store.save()),
    ]
    for _ in range(200):
        refused = max(store.lengths()) > 4
        (store.reset if refused else operations[pick.integers(len(operations))])()
        assert on_device(store) == store.lengths()


def test_a_captured_decode_writes_behind_the_lengths_of_each_replay(caches: Caches) -> None:
    store = opened(caches)
    runtime, source = store.space.runtime, store.space.staged(store.layers.geometry, *rows(1))
    step = runtime.capture(lambda: store.layers.place(source, 0, 3))
    store.append(*rows(2, layers=1, seed=9), 1)
    given = [rows(1, seed=seed) for seed in range(4)]
    for each in given:
        store.space.staged(store.layers.geometry, *each)
        step.replay()
    assert on_device(store) == [4, 6, 4]
    store.lengths_ = [4, 6, 4]
    for layer, before in ((0, 0), (1, 2), (2, 0)):
        for found, kind in zip(store.read(layer), (0, 1), strict=True):
            wanted = np.concatenate([each[kind][layer] for each in given], axis=1)
            assert found[:, before:].tobytes() == wanted.tobytes()


GRIDS = [((1, 1, 1), (1, 1, 1)), ((1, 1, 1), (3, 2, 1)), ((4, 3, 1), (2, 5, 3)), ((32, 2, 1), (1, 1, 7))]


@pytest.mark.parametrize(("group", "groups"), GRIDS)
@pytest.mark.parametrize(("advance", "n"), [(0, 1), (0, 3), (1, 1), (1, 2)])
@pytest.mark.parametrize("config", SHAPES, ids=lambda c: f"heads {c.kv_heads}, rows of {c.k_dim} and {c.v_dim}")
def test_any_launch_shape_places_every_row(config: Config, advance: int, n: int, group: Any, groups: Any) -> None:
    """Layer 1 of two is written to, behind a length of 1; nothing else changes but, with `advance`, its length."""
    runtime, space = on_cuda_cpu().runtime, Workspace(on_cuda_cpu().runtime)
    layers, new = Layers(space, config, 2), rows(n, config, 1)
    layers.set_lengths([2, 1])
    source = space.staged(layers.geometry_of(1), *new)
    before = Pair(*(a.copy() for a in layers.read(0, 2, 5)))
    _launch(runtime, layers, source, advance, group, groups)
    for found, was, wrote in zip(layers.read(0, 2, 5), before, new, strict=True):
        was[1, :, 1 : 1 + n] = wrote[0]
        assert found.tobytes() == was.tobytes()
    layers.rows.check_guards()
    lengths = runtime.download(layers.lengths, 0, 16).view(np.int64)[0].tolist()
    assert lengths == [2, 1 + n * advance]


def _launch(runtime: Any, layers: Layers, source: Place, advance: int, group: Any, groups: Any) -> None:
    """`Layers.put` for layer 1, in a shape of the test's choice."""

    class Shaped:
        meter = runtime.meter

        def launch(self, kernel: str, work: object, *args: Any) -> None:
            runtime.run(kernel, group, groups, *args)

    space: Any = layers.space
    space.runtime = Shaped()
    try:
        layers.put(source, 1, 1, advance=bool(advance))
    finally:
        space.runtime = runtime


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
