"""The store on devices, what the suite cannot see of it: lengths there, captured decodes, launch shapes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from kvconform.generate.strategies import sample
from kvconform.generate.strategies.store import explored
from kvgpu.adapter import Caches
from kvgpu.caches.store import Store
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.layout import Place
from kvgpu.memory.row_groups import Layers
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Config
from kvspec.notation import sentence
from kvspec.trace import Trace
from support.device.devices import ADAPTERS, NAMES
from support.running.local_adapter import LocalAdapter

CONFIG = Config(layers=3, max_len=6)
SHAPES = [
    Config(layers=2, max_len=5, kv_heads=h, k_dim=k, v_dim=v) for h, k, v in ((1, 8, 8), (3, 5, 3), (2, 6, 16))
]


@pytest.fixture(params=NAMES)
def caches(request: pytest.FixtureRequest) -> Caches:
    return ADAPTERS[request.param]()


@cache
def some() -> tuple[Trace, ...]:
    return tuple(sample.some(explored(), 80, seed=7))


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
    under_test = LocalAdapter(caches)
    for trace in some():
        seen = under_test.run(trace)
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
@pytest.mark.parametrize(("advance", "n"), [(0, 1), (0, 3), (1, 1)])
@pytest.mark.parametrize("config", SHAPES, ids=lambda c: f"heads {c.kv_heads}, rows of {c.k_dim} and {c.v_dim}")
def test_any_launch_shape_places_every_row(config: Config, advance: int, n: int, group: Any, groups: Any) -> None:
    """Layer 1 of two is written to, behind a length of 1; nothing else changes but, with `advance`, its length."""
    runtime = ADAPTERS["cuda-cpu"]().runtime
    space = Workspace(runtime)
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
