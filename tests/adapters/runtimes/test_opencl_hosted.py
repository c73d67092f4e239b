"""Large rows that are put in order for the host are written to its memory; what a caller gets is the caller's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvgpu.runtimes.opencl import HOSTED, HostBlock, shared
from kvspec.geometry import Array, Config
from support.device.devices import adapter

WINDOW = Config(kv_heads=4, k_dim=64, v_dim=32, dtype="f16", window=2048)
LAYERS = Config(kv_heads=4, k_dim=64, v_dim=32, dtype="f16", layers=3, bounds="1024-2048")
PAGES = Config(kv_heads=4, k_dim=64, v_dim=32, dtype="f16", page_size=16, pages=160)


def rows(n: int, seed: int) -> list[Array]:
    random = np.random.default_rng(seed)
    return [random.standard_normal((1, 4, n, d), np.float32).astype(np.float16) for d in (64, 32)]


def wrapped() -> tuple[Any, Any]:
    """A ring of an adapter and one of the reference, which both begin in the middle of their slots."""
    rings = adapter().open("ring", WINDOW), Reference().open("ring", WINDOW)
    for ring in rings:
        ring.append(*rows(2048, 1))
        for i in range(5):
            ring.append(*rows(1, 2 + i))
    return rings


def test_a_view_is_the_references_and_does_not_change_later() -> None:
    ours, theirs = wrapped()
    first, wanted = ours.read("view"), theirs.read("view")
    kept = [a.copy() for a in first]
    for a, b in zip(first, wanted, strict=True):
        assert a.tobytes() == b.tobytes() and a.flags.writeable
    for ring in (ours, theirs):
        ring.append(*rows(1, 99))
    second = ours.read("view")
    assert all((a == b).all() for a, b in zip(first, kept, strict=True))
    for array in first:
        array[...] = 7
    for a, b in zip(second, theirs.read("view"), strict=True):
        assert a.tobytes() == b.tobytes()
    assert not any(np.shares_memory(a, b) for a in (*first, *second) for b in (*first, *second) if a is not b)


def test_a_view_crosses_once_and_allocates_nothing_on_the_device() -> None:
    ours, _ = wrapped()
    meter = ours.space.runtime.meter
    before = meter.reading()
    nbytes = sum(a.nbytes for a in ours.read("view"))
    counted = {"device_to_host": nbytes, "device_to_device": nbytes, "launches": 1, "synchronisations": 2}
    assert nbytes > HOSTED and meter.since(before) == counted


def synced(cache: Any, length: int) -> tuple[Any, list[Array]]:
    """A bucketed cache of this many past rows, of which only the device had the newest, behind the padding."""
    random = np.random.default_rng(4)
    shapes = [(3, 1, 4, length, d) for d in (64, 32)]
    past = [random.standard_normal(shape, np.float32).astype(np.float16) for shape in shapes]
    queries = random.standard_normal((3, 1, 4, 1, 64), np.float32)
    cache.prefill(*(a[..., :-1, :] for a in past))
    cache.bind(True)
    cache.decode(queries, *(a[..., -1:, :] for a in past), 1, False, None, None)
    cache.sync()
    return cache, past


@pytest.mark.parametrize("length", [1000, 1024])
def test_past_rows_of_all_layers_are_side_by_side(length: int) -> None:
    cache, past = synced(adapter().open("bucket", LAYERS), length)
    assert sum(a.nbytes for a in past) > HOSTED
    for found, wanted in zip(cache.rows, past, strict=True):
        assert found.tobytes() == wanted.tobytes()
    bases = [a.base for a in cache.rows]
    assert bases[0] is bases[1] is not None, "no copy of what kernels wrote to one block"


def test_gathered_pages_are_in_order() -> None:
    pool, (keys, values) = adapter().open("page", PAGES), rows(2500, 3)
    sequence = pool.admit()  # type: ignore[attr-defined]
    pool.append(keys, values, sequence)  # type: ignore[attr-defined]
    found = pool.read_sequence(sequence)  # type: ignore[attr-defined]
    assert found.keys.tobytes() == keys.tobytes() and found.values.tobytes() == values.tobytes()


def test_only_large_memory_of_a_cpu_is_the_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = shared("")
    assert runtime.hosted(HOSTED - 1) is None and isinstance(runtime.hosted(HOSTED), HostBlock)
    monkeypatch.setattr(runtime, "cpu", False)
    assert runtime.hosted(HOSTED) is None


def test_where_the_device_takes_no_more_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = shared("")
    cl = runtime._cl

    def full(*_: Any, **__: Any) -> Any:
        raise cl.Error("full")

    fake = SimpleNamespace(Buffer=full, Error=cl.Error, mem_flags=cl.mem_flags)
    monkeypatch.setattr(runtime, "_cl", fake)
    with pytest.raises(MemoryError, match=f"no room for {HOSTED} bytes"):
        runtime.hosted(HOSTED)
    assert runtime.capture(lambda: None) is not None
    with pytest.raises(RuntimeError, match="allocate while capturing"):
        runtime.capture(lambda: runtime.hosted(HOSTED) and None)
