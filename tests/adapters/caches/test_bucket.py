"""Buckets on a device: as the reference has them, at a cost that is counted, and unharmed when memory runs out."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kvconform.generate.strategies import bucket, residency
from kvgpu.adapter import Caches
from kvgpu.adapters import CudaCPU
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config
from support import random_traces, slow
from support.device.device_costs import cost, raises
from support.device.devices import ADAPTERS, NAMES, Scarce, adapter


@pytest.mark.parametrize(
    "drawn", [(bucket.explored,), (residency.resident, bucket.explored)], ids=["host", "device"]
)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", slow.counts(5, 40))
def test_random_operations_observe_the_same(count: int, name: str, drawn: Any) -> None:
    random_traces.observe_the_same(ADAPTERS[name](), random_traces.drawn(*drawn, count=count))


CONFIG = Config(kv_heads=2, k_dim=8, v_dim=6, layers=3, batch=2, bounds="3-6")
ROW = 3 * CONFIG.row_bytes
"""Bytes of a row of every layer."""

SPLITS = 1


def _numbers(*shape: int) -> Array:
    return np.random.default_rng(5).integers(-16, 17, shape).astype(np.float32) / np.float32(8)


def rows(n: int) -> Pair:
    """Rows of every layer."""
    return Pair(*(_numbers(3, 2, 2, n, dim).astype(DTYPES["f16"]) for dim in (8, 6)))


def queries(n: int = 1) -> Array:
    """Queries of every layer, two for each head."""
    return _numbers(3, 2, 4, n, 8)


def filled(ours: Caches, n: int = 2, steps: int = 1) -> Any:
    """A cache with n rows prefilled, and some decoded."""
    cache: Any = ours.open("bucket", CONFIG)
    cache.prefill(*rows(n))
    for _ in range(steps):
        cache.decode(queries(), *rows(1), SPLITS, False, None)
    return cache


def test_a_steady_decode_moves_two_rows_of_each_layer_and_nothing_else() -> None:
    ours = adapter()
    cache = filled(ours, 2, 0)
    asked, keys, values, out = ours.place(queries(), *rows(1), _numbers(3, 2, 4, 1, 6))
    cache.bind(False)
    cache.decode(asked, keys, values, SPLITS, False, None, out)  # the scratch space there is from then on
    cache.cut(0)
    cache.unbind()
    cache.bind(False)
    counted = [cost(cache, lambda: cache.decode(asked, keys, values, SPLITS, False, None, out)) for _ in range(4)]
    assert counted == [
        {"launches": 3, "device_to_device": ROW},
        {"launches": 4, "device_to_device": 2 * ROW},
        {"launches": 4, "device_to_device": 2 * ROW},
        {"launches": 4, "device_to_device": 2 * ROW},
    ]


def test_only_the_output_is_read() -> None:
    cache = filled(adapter(), 4)
    counted = cost(cache, lambda: cache.decode(queries(), *rows(1), SPLITS, False, None))
    assert counted["device_to_host"] == 3 * 2 * 4 * 6 * 4
    assert counted["host_to_device"] == ROW + queries().nbytes


@pytest.mark.parametrize("to", [3, 2], ids=["larger", "smaller"])
def test_another_bound_is_filled_on_the_device(to: int) -> None:
    cache = filled(adapter(), 2, 2)
    assert cache.bound() == 3
    if to == 2:
        cache.decode(queries(), *rows(1), SPLITS, False, None)
        assert cache.bound() == 6
        cache.cut(2)
    counted = cost(cache, lambda: cache.bind(False))
    assert counted.pop("launches") <= 4
    assert counted == {
        "device_to_device": cache.past() * ROW,
        "allocations": 1,
        "frees": 1,
        "live_bytes": counted["live_bytes"],
    }


def test_a_refresh_uploads_the_rows_of_the_host_and_no_padding() -> None:
    cache = filled(adapter(), 2)
    cache.sync()
    counted = cost(cache, lambda: cache.bind(True))
    assert counted["host_to_device"] == 3 * ROW
    assert counted["device_to_device"] == 3 * ROW and "device_to_host" not in counted


def test_a_sync_downloads_the_past_rows_and_no_padding() -> None:
    cache = filled(adapter(), 3)
    counted = cost(cache, cache.sync)
    assert counted == {"device_to_host": 4 * ROW, "synchronisations": 4}
    assert cost(cache, cache.unbind) == cost(cache, lambda: cache.cut(1)) == {}


def test_handles_are_given_back_when_others_take_their_place() -> None:
    cache = filled(adapter(), 2)
    meter = cache.space.runtime.meter
    cache.encode(*rows(5))
    before = meter.live_bytes
    for _ in range(3):
        cache.sync()
        cache.bind(True)
        cache.block(queries(2), *rows(2), SPLITS, None)
        cache.unbind()
        cache.encode(*rows(5))
        cache.bind(False)
    gc.collect()
    assert meter.live_bytes == before


def _decoded(cache: Any, refresh: bool = False) -> None:
    cache.decode(queries(), *rows(1), SPLITS, refresh, None)


OPERATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], int]] = {
    "decode": (lambda cache: None, _decoded, 0),
    "crossing": (_decoded, lambda cache: cache.bind(False), 1),
    "crossing step": (_decoded, _decoded, 1),
    "refresh": (lambda cache: cache.sync(), lambda cache: _decoded(cache, True), 1),
    "block": (lambda cache: None, lambda cache: cache.block(queries(2), *rows(2), SPLITS, None), 1),
    "long block": (lambda cache: None, lambda cache: cache.block(queries(40), *rows(40), SPLITS, None), 5),
    "encode": (lambda cache: None, lambda cache: cache.encode(*rows(4)), 1),
    "cross": (lambda cache: None, lambda cache: cache.cross(queries(50), SPLITS), 3),
}
"""What is done before, what is tried, and how many allocations that makes."""


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_nth_allocation_fails(operation: str) -> None:
    before, do, expected = OPERATIONS[operation]
    failed = [_fails(before, do, nth) for nth in range(expected + 1)]
    assert failed == [True] * expected + [False]


def _fails(prepare: Callable[[Any], Any], do: Callable[[Any], Any], nth: int) -> bool:
    """Whether it ran out of memory; if so, that nothing has changed, and that the cache goes on."""
    cache = filled(Caches("scarce", Scarce(adapter().runtime), checks=True), 2)
    cache.encode(*rows(2))
    cache.cross(queries(), SPLITS)
    prepare(cache)
    runtime, before = cache.space.runtime, _seen(cache)
    runtime.left = nth
    failed = raises(lambda: do(cache))
    runtime.left = 1 << 30
    if failed:
        assert _seen(cache) == before
        _decoded(cache)
        assert cache.past() == before[0] + 1
    return failed


def _seen(cache: Any) -> Any:
    """All that can be told of the cache."""
    shown = [read(i) for read in (cache.read, cache.host, cache.handle) for i in range(CONFIG.layers or 0)]
    return cache.past(), cache.bound(), cache.held(), [a.tobytes() for pair in shown for a in pair]


SHAPES = [((1, 1, 1), (1, 1, 1)), ((5, 3, 1), (2, 2, 3)), ((32, 4, 1), (1, 7, 2)), ((2, 1, 1), (4, 1, 1))]
"""Items of a group, and groups."""


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_launch_shape_does_all_the_work(shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kvgpu.runtimes import launch_shapes

    monkeypatch.setattr(launch_shapes, "gpu", lambda work: shape)
    ours, whole = filled(CudaCPU(checks=True), 2, 3), filled(adapter(), 2, 3)
    outputs = [c.block(queries(3), *rows(3), SPLITS, None) for c in (ours, whole)]
    assert outputs[0].tobytes() == outputs[1].tobytes()
    assert _seen(ours) == _seen(whole)
