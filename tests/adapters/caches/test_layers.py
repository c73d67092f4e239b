"""Layers of unlike views on a device: one launch an append, whatever the views; no harm where memory runs out."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from kvconform.generate.strategies import layers
from kvgpu.adapter import Caches
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Config
from support import random_traces, slow
from support.device import kernel_faults
from support.device.device_costs import cost, raises
from support.device.devices import ADAPTERS, NAMES, Scarce, adapter

GEMMA = ",".join(["window:4"] * 5 + ["full"])
"""Six layers as Gemma 3 repeats them."""

MIXED = "window:3,full,chunk:4,share:1,sinks:2:3"
MODELS = {1: "window:4", 4: MIXED, 26: ",".join([GEMMA] * 4 + ["window:4"] * 2)}
"""What layers are, by the number of those with rows."""


def opened(of: str, on: Caches | None = None, step: int = 64) -> Any:
    """A fresh cache of these layers."""
    return (on or adapter()).open("layers", Config(of=of, layers=layers.count(of), step=step))


def rows(cache: Any, n: int) -> Pair:
    """Rows of arbitrary bits for each layer that has some."""
    config, random = cache.rows.together, np.random.default_rng(n)
    sizes = (config.shape(kind, n) for kind in "kv")
    return Pair(*(random.integers(0, 256, (*s[:3], 2 * s[3]), np.uint8).view(DTYPES["f16"]) for s in sizes))


def shown(cache: Any) -> list[bytes]:
    """Everything that the queries of the last append see, by layer."""
    return [a.tobytes() for pair in cache.histories() for a in pair] + [cache.mask().tobytes()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("explored", [layers.explored, layers.explored_deep], ids=["small", "deep"])
@pytest.mark.parametrize("count", slow.counts(6, 60))
def test_random_operations_observe_the_same(count: int, explored: Any, name: str) -> None:
    random_traces.observe_the_same(ADAPTERS[name](), random_traces.drawn(explored, count=count), "visible")


@pytest.mark.usefixtures("each_runtime")
@pytest.mark.parametrize("count", MODELS)
@pytest.mark.parametrize("n", [1, 3])
def test_an_append_is_one_launch_for_all_layers_and_nothing_else(n: int, count: int) -> None:
    cache = opened(MODELS[count])
    there = adapter().place(*rows(cache, n))
    cache.append(*rows(cache, 5))
    each = {"launches": 1, "device_to_device": n * count * cache.rows.one.row_bytes}
    assert [cost(cache, lambda: cache.append(*there)) for _ in range(15)] == [each] * 15


@pytest.mark.parametrize("count", MODELS)
def test_new_storage_is_prepared_filled_and_written_in_three_launches(count: int) -> None:
    cache = opened(MODELS[count], step=8)
    there = adapter().place(*rows(cache, 6))
    assert cost(cache, lambda: cache.append(*there))["launches"] == 2, "of nothing, nothing is moved"
    longer = adapter().place(*rows(cache, 7))
    found = cost(cache, lambda: cache.append(*longer))
    moved = sum(view.needs(6) for view in cache.rows.views)
    assert (found["launches"], found["allocations"], found["frees"]) == (3, 1, 1)
    assert found["device_to_device"] == (moved + 7 * count) * cache.rows.one.row_bytes


def test_a_window_takes_the_room_of_a_window_however_long_the_context() -> None:
    cache = opened("window:4,full", step=1)
    sizes = []
    for _ in range(12):
        cache.append(*rows(cache, 1))
        sizes.append(cache.held() // cache.rows.one.row_bytes)
    assert sizes == [4 + offset for offset in range(1, 13)]


def test_going_back_asking_and_freeing_launch_nothing() -> None:
    cache = opened("chunk:4,full")
    cache.append(*rows(cache, 5))
    assert cost(cache, lambda: [cache.can_rewind(to) for to in range(7)]) == {}
    assert cost(cache, lambda: cache.rewind(4)) == {}
    with pytest.raises(Refused, match="layer 0 has dropped"):
        cache.rewind(3)
    block = cache.rows.rows.block.nbytes
    assert cost(cache, cache.free) == {"frees": 1, "live_bytes": -block}
    assert cache.held() == 0


@pytest.mark.parametrize("before", [0, 5])
def test_an_append_for_which_memory_runs_out_changes_no_layer(before: int) -> None:
    assert [_fails(before, nth) for nth in range(3)] == [True, True, False]


def _fails(before: int, nth: int) -> bool:
    """Whether it ran out of memory; if so, that nothing has changed, and that the cache goes on."""
    scarce = Scarce(adapter().runtime)
    cache, twin = (opened(MIXED, Caches("scarce", scarce)) for _ in range(2))
    for each in (cache, twin):
        each.append(*rows(each, before))
    cache.space._blocks.clear()
    scarce.left, held = nth, cache.held()
    failed = raises(lambda: cache.append(*rows(cache, 90)))
    scarce.left = 1 << 30
    if failed:
        assert (cache.offset, cache.held()) == (before, held)
        for each in (cache, twin):
            each.append(*rows(each, 3))
        assert shown(cache) == shown(twin)
    return failed


def test_everything_is_given_back() -> None:
    ours = adapter()
    opened(MIXED, ours).append(*rows(opened(MIXED, ours), 2))
    gc.collect()
    before = ours.runtime.meter.live_bytes
    cache = opened(MIXED, ours)
    for n in (1, 4, 9):
        cache.append(*rows(cache, n))
    del cache
    gc.collect()
    assert ours.runtime.meter.live_bytes == before


SHAPES = [((1, 1, 1), (1, 1, 1)), ((5, 3, 1), (2, 2, 3)), ((32, 4, 1), (1, 7, 2)), ((2, 1, 1), (4, 1, 1))]
"""Items of a group, and groups."""


@pytest.mark.parametrize("shape", slow.one_in(2, [(shape,) for shape in SHAPES]), ids=str)
def test_any_launch_shape_does_all_the_work(shape: Any) -> None:
    ours = Caches("shaped", CudaCPURuntime(shape=lambda work: shape), checks=True)
    assert _worked(ours) == _worked(adapter())


def _worked(ours: Caches) -> list[list[bytes]]:
    """What a cache shows after appends that wrap and grow, before and after it went back."""
    cache, found = opened(MIXED, ours, step=4), []
    for n in (2, 1, 5, 1, 1, 7, 3, 0, 4):
        cache.append(*rows(cache, n))
        if n == 0:
            cache.rewind(0)
        else:
            found.append(shown(cache))
    return [*found, *_put_back(cache, ours)]


def _put_back(cache: Any, ours: Caches) -> list[list[bytes]]:
    """What caches show once they became what another one was, and what that shows which went on."""
    saved, others, found = cache.snapshot(0), [opened(MIXED, ours, step=4), cache], list[list[bytes]]()
    cache.append(*rows(cache, 6))
    for other in others:
        for to in (saved.stop, 0):
            other.restore(saved, to)
            other.append(*rows(other, 3))
            found.append(shown(other))
    return found


@pytest.mark.parametrize("before", [1, 4, 7])
def test_a_snapshot_and_a_restore_are_a_launch_each_and_hold_what_is_needed(before: int) -> None:
    cache = opened(MIXED, step=8)
    cache.append(*rows(cache, before))
    row = cache.rows.one.row_bytes
    cost(cache, lambda: cache.snapshot(0).close())
    needed = sum(view.needs(before) for view in cache.rows.views) * row
    found = cost(cache, lambda: cache.snapshot(0).close())
    assert (found["launches"], found["allocations"], found["device_to_device"]) == (2, 1, needed), "one prepares"
    saved = cache.snapshot(0)
    assert saved.nbytes == needed
    assert cost(cache, lambda: cache.restore(saved, before)) == {"launches": 1, "device_to_device": needed}


def test_a_restore_for_which_memory_runs_out_changes_no_layer() -> None:
    scarce = Scarce(adapter().runtime)
    ours = Caches("scarce", scarce)
    long, cache, twin = (opened(MIXED, ours, step=4) for _ in range(3))
    long.append(*rows(long, 30))
    saved = long.snapshot(0)
    for each in (cache, twin):
        each.append(*rows(each, 5))
    scarce.left = 0
    assert raises(lambda: cache.restore(saved, 30))
    scarce.left = 1 << 30
    for each in (cache, twin):
        each.append(*rows(each, 3))
    assert shown(cache) == shown(twin)
    cache.restore(saved, 30)
    for each in (cache, long):
        each.append(*rows(each, 2))
    assert shown(cache) == shown(long)


FAULTS = {
    "the view of the first layer for all": ("views + 5 * l", "views"),
    "sinks in the ring": (
        "behind < 0 ? p : sinks + (u32)behind % (u32)(to_slots",
        "0 ? p : sinks + (u32)p % (u32)(to_slots",
    ),
    "layers without those before them": ("to_row * heads + head", "head"),
    "rows of a ring where they lay": ("sinks + (u32)behind % (u32)(from_slots - sinks)", "t"),
    "a window of rows for all layers": ("view[1] ? view[0] + view[1] - 1 : rows", "view[0] + 1"),
    "as many rows of a chunk as of a window": ("view[4] ?", "0 ?"),
    "rows are saved over those of other layers": ("to_packed ? before", "to_packed ? 0"),
    "rows come back from those of the first layer": ("from_packed ? before", "from_packed ? 0"),
    "the oldest rows kept": ("dropped = rows - held", "dropped = 0"),
}
"""Faults of the kernel, each as a change to its text."""


@pytest.mark.slow
def test_faults_of_the_kernel_are_found() -> None:
    worked = kernel_faults.answers("layer", FAULTS, _worked)
    assert [each != worked[0] for each in worked] == [False] + [True] * len(FAULTS)
    assert worked[0] == _worked(adapter())
