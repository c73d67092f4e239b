"""The batch on a device: as the reference has it, at a cost that is counted, and unharmed when memory runs out."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kvconform.generate.strategies import batch
from kvgpu.adapter import Caches
from kvgpu.adapters import CudaCPU
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config
from support import random_traces, slow
from support.device.device_costs import cost, raises
from support.device.devices import ADAPTERS, NAMES, Scarce, adapter


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", slow.counts(6, 60))
def test_random_operations_observe_the_same(count: int, name: str) -> None:
    random_traces.observe_the_same(ADAPTERS[name](), random_traces.drawn(batch.explored, count=count))


CONFIG = Config(kv_heads=2, k_dim=8, v_dim=6, layers=3, max_len=6)


def rows(m: int, config: Config = CONFIG) -> Pair:
    """Rows of a step."""
    return Pair(*(_bits((config.layers or 1, m, config.kv_heads, d)) for d in (config.k_dim, config.v_dim)))


def _bits(shape: tuple[int, ...]) -> Array:
    size = int(np.prod(shape))
    return np.random.default_rng(7).integers(0, 256, 2 * size, np.uint8).view(DTYPES["f16"]).reshape(shape)


def filled(adapter: Caches, n: int = 2, m: int = 3) -> Any:
    """A store with n rows in each layer, and a batch of m with sequence 1 scattered."""
    store: Any = adapter.open("store", CONFIG)
    store.append(*(_bits((3, 2, n, d)) for d in (8, 6)))
    store.batch(m)
    store.scatter(1, n)
    return store


ROW = 2 * 2 * (8 + 6)
"""Bytes of a row of CONFIG, keys and values of both heads."""


def test_a_scatter_of_all_layers_is_one_launch_and_nothing_else() -> None:
    store = filled(adapter())
    assert cost(store, lambda: store.scatter(2, 2)) == {"launches": 1, "device_to_device": 3 * 2 * ROW}
    assert cost(store, lambda: store.scatter(2, 1, 1)) == {"launches": 1, "device_to_device": ROW}
    assert cost(store, lambda: store.scatter(2, 0)) == {"launches": 1}


def test_a_step_of_rows_on_the_device_is_one_launch_and_nothing_else() -> None:
    ours = adapter()
    store = filled(ours)
    there = ours.place(*rows(3))
    for _ in range(3):
        assert cost(store, lambda: store.step(*there)) == {"launches": 1, "device_to_device": 3 * 3 * ROW}


@pytest.mark.parametrize("n", [0, 1, 6])
def test_going_back_is_one_launch_whatever_the_length(n: int) -> None:
    store = filled(adapter(), n)
    assert cost(store, lambda: store.rollback_sequence(1, 0)) == {"launches": 1}
    assert cost(store, store.reset_batch) == {"launches": 1}
    assert cost(store, lambda: store.batch(2)) == {"launches": 1}


def test_a_replay_allocates_nothing_and_reads_where_to_write_from_the_device() -> None:
    store = filled(adapter())
    work = store.capture()
    counted = [cost(store, lambda: work.replay(*rows(3))) for _ in range(3)]
    assert all("allocations" not in c and c["launches"] == 1 for c in counted)
    assert store.sequences() == [3, 5, 3]
    lengths = store.batched.memory.lengths
    found = store.space.runtime.download(lengths, 0, lengths.nbytes).view(np.int64)[0]
    assert found.tolist() == [3] * 3 + [5] * 3 + [3] * 3


def test_freeing_returns_every_byte() -> None:
    ours = adapter()
    store: Any = ours.open("store", CONFIG)
    gc.collect()
    meter = store.space.runtime.meter
    before = meter.live_bytes
    store.batch(3)
    works = [store.capture() for _ in range(2)]
    store.batch(4)
    works.append(store.capture())
    store.free_batch()
    assert meter.live_bytes == before and len(works) == 3


OPERATIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "batch": (lambda store: store.batch(4), 3),
    "batch within": (lambda store: store.batch(3), 0),
    "scatter": (lambda store: store.scatter(0, 2), 0),
    "step": (lambda store: store.step(*rows(2)), 0),
    "capture": (lambda store: store.capture(), 0),
    "init": (lambda store: store.init(CONFIG.changed(max_len=7)), 2),
}
"""Each with how many allocations it makes."""


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_nth_allocation_fails(operation: str) -> None:
    do, expected = OPERATIONS[operation]
    assert [_fails(do, nth) for nth in range(expected + 1)] == [True] * expected + [False]


def _fails(do: Callable[[Any], Any], nth: int) -> bool:
    """Whether it ran out of memory; if so, that nothing has changed, and what was captured goes on."""
    store = filled(Caches("scarce", Scarce(adapter().runtime), checks=True))
    store.batch(2)
    store.scatter(1, 2)
    work, runtime = store.capture(), store.space.runtime
    before, runtime.left = _seen(store), nth
    failed = raises(lambda: do(store))
    runtime.left = 1 << 30
    if failed:
        assert _seen(store) == before
        work.replay(*rows(2))
        assert store.sequences() == [1, 3]
        assert store.read_sequence(2, 0).keys.tobytes() == rows(2).keys[2, 0, :, None].tobytes()
    return failed


def _seen(store: Any) -> Any:
    """All that can be told of store and batch, and the memory in use."""
    gc.collect()
    held = [store.read_sequence(layer, s) for layer in range(3) for s in range(len(store.sequences()))]
    pairs = [*held, *(store.read(layer) for layer in range(3))]
    contents = [a.tobytes() for pair in pairs for a in pair]
    return store.lengths(), store.sequences(), store.addresses(), contents, store.space.runtime.meter.live_bytes


def test_a_batch_that_failed_has_not_touched_the_memory_of_the_one_there_is() -> None:
    store = filled(Caches("scarce", Scarce(adapter().runtime), checks=True))
    store.space.runtime.left = 0
    addresses = store.addresses()
    with pytest.raises(MemoryError):
        store.batch(9)
    assert store.addresses() == addresses and store.sequences() == [0, 2, 0]


SHAPES = [((1, 1, 1), (1, 1, 1)), ((5, 3, 1), (2, 2, 3)), ((32, 4, 1), (1, 7, 2)), ((2, 1, 1), (4, 1, 1))]
"""Items of a group, and groups."""


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_launch_shape_does_all_the_work(shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kvgpu.runtimes import launch_shapes

    monkeypatch.setattr(launch_shapes, "gpu", lambda work: shape)
    ours, whole = CudaCPU(checks=True), filled(adapter())
    store = filled(ours)
    for each in (whole, store):
        each.scatter(0, 1, 2)
        each.scatter(0, 1)
        each.step(*rows(3))
        each.step(*rows(3))
        each.rollback_sequence(1, 3)
    assert _seen(store)[1] == _seen(whole)[1] == [3, 3, 2]
    assert _seen(store)[3] == _seen(whole)[3]
