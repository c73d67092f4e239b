"""Attention on a device: the bits of the reference, a cost that is counted, no harm where memory runs out."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvgpu.adapter import Caches
from kvspec.contract import Attention, Pair
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Array, Config
from kvspec.masks import Explicit, Window
from kvspec.session.step import Inputs
from support import slow
from support.device import device_costs
from support.device.attention_pair import Pairs, settled
from support.device.device_costs import raises
from support.device.devices import ADAPTERS, NAMES, Scarce, adapter
from support.fakes import fake_cupy

EVERYWHERE: dict[str, Callable[[], Caches]] = ADAPTERS | {
    "cupy": lambda: Caches("cupy", fake_cupy.runtime(), checks=True),
}


@pytest.mark.parametrize("kind", ["growing", "ring", "store"])
@pytest.mark.parametrize("name", [*NAMES, "cupy"])
@pytest.mark.parametrize("count", slow.counts(3, 25))
def test_random_attends_give_the_same_bits(count: int, name: str, kind: str) -> None:
    ours = EVERYWHERE[name]()
    for seed in range(count // 3 if name == "opencl wide" else count):
        _attends(Pairs(ours, seed), kind)


def _attends(pairs: Pairs, kind: str) -> None:
    random = pairs.random
    pairs.open(kind, _config(kind, random))
    for _ in range(8):
        n = int(random.choice([0, 1, 1, 1, 2, 3, 9, 40]))
        back = int(random.integers(0, 60)) if random.random() < 0.2 else None
        if kind == "store":
            layer = int(random.integers(0, 2))
            if back is not None:
                pairs.do({"op": "rollback", "to": back})
            pairs.attend(n, pairs.cache.lengths_[layer] + n, layer=layer)
        else:
            if back is not None:
                pairs.do({"op": "rewind", "to": min(back, pairs.cache.offset)})
            pairs.attend(n, pairs.cache.held_after(n))


def _config(kind: str, random: np.random.Generator) -> Config:
    """Any geometry, with windows that wrap."""
    store = kind == "store"
    return Config(
        batch=1 if store else int(random.integers(1, 3)),
        kv_heads=int(random.integers(1, 4)),
        k_dim=int(random.integers(5, 18)),
        v_dim=int(random.integers(1, 20)),
        dtype=str(random.choice(list(DTYPES))),
        step=int(random.integers(1, 40)),
        window=int(random.integers(1, 50)) if kind == "ring" else None,
        layers=2 if store else None,
        max_len=70 if store else None,
    )


@pytest.mark.parametrize("name", [*NAMES, "cupy"])
@pytest.mark.parametrize("count", slow.counts(3, 20))
def test_random_batches_and_replays_give_the_same_bits(count: int, name: str) -> None:
    ours = EVERYWHERE[name]()
    for seed in range(count // 3 if name == "opencl wide" else count):
        pairs = Pairs(ours, seed)
        pairs.open("store", _config("store", pairs.random))
        pairs.do({"op": "append", "n": 5}, Inputs(pairs.rows(5, 2)))
        pairs.do({"op": "batch", "m": 3})
        for _ in range(15):
            pairs.random.choice(np.array(MOVES, object))(pairs)


def _scatter(pairs: Pairs) -> None:
    n = int(pairs.random.integers(0, min(pairs.cache.lengths_) + 1))
    layer = {"layer": int(pairs.random.integers(0, 2))} if pairs.random.random() < 0.3 else {}
    pairs.do({"op": "scatter", "sequence": int(pairs.random.integers(0, 3)), "n": n, **layer})


def _step(pairs: Pairs) -> None:
    rows = pairs.rows(pairs.config.kv_heads, 2 * 3)
    made = (a[:, 0].reshape(2, 3, pairs.config.kv_heads, a.shape[-1]) for a in rows)
    pairs.do({"op": "step"}, Inputs(Pair(*made)))


def _capture(pairs: Pairs) -> None:
    name, heads = f"w{len(pairs.captured)}", pairs.config.kv_heads * int(pairs.random.integers(1, 4))
    pairs.captured[name] = heads
    splits = int(pairs.random.integers(1, 5))
    pairs.do(
        {
            "op": "captureattend",
            "name": name,
            "layer": int(pairs.random.integers(0, 2)),
            "heads": heads,
            "splits": splits,
        }
    )


def _replay(pairs: Pairs) -> None:
    for name, heads in pairs.captured.items():
        queries = pairs.queries(1, 1)[:, :1].repeat(heads, 1)
        pairs.do({"op": "replayattend", "name": name}, Inputs(pairs.rows(1), queries))


def _ask(pairs: Pairs) -> None:
    layer = int(pairs.random.integers(0, 2))
    pairs.do({"op": "attendbatch", "layer": layer, **pairs.asking()}, Inputs(queries=pairs.queries(1, 3)))


def _roll(pairs: Pairs) -> None:
    sequence = {"sequence": int(pairs.random.integers(0, 3))} if pairs.random.random() < 0.5 else {}
    pairs.do({"op": "rollback", "to": int(pairs.random.integers(0, 6)), **sequence})


MOVES = (_scatter, _step, _step, _capture, _replay, _ask, _ask, _roll)

# ---- What it costs ----

STEADY = Config(kv_heads=2, k_dim=8, v_dim=6, step=64, window=9)
ROW = 2 * 2 * (8 + 6)
"""Bytes of a row of STEADY, keys and values of both heads."""


def _numbers(*shape: int, dtype: str = "f16") -> Array:
    return np.random.default_rng(7).standard_normal(shape).astype(DTYPES[dtype])


def _rows(n: int) -> tuple[Array, Array]:
    return _numbers(1, 2, n, 8), _numbers(1, 2, n, 6)


def _asks(n: int = 1, batch: int = 1) -> Array:
    return _numbers(batch, 4, n, 8, dtype="f32")


HOW = Attention(splits=3)


def _opened(ours: Caches, kind: str) -> Any:
    """A cache with three rows, of a store in each of two layers; what earlier tests left is given back."""
    gc.collect()
    if kind == "store":
        store: Any = ours.open("store", STEADY.changed(window=None, layers=2, max_len=40))
        store.append(_numbers(2, 2, 3, 8), _numbers(2, 2, 3, 6))
        store.batch(2)
        store.scatter(1, 3)
        return store
    cache = ours.open(kind, STEADY.changed(window=STEADY.window if kind == "ring" else None))
    cache.append(*_rows(3))
    return cache


@pytest.mark.parametrize("kind", ["growing", "ring", "store"])
@pytest.mark.parametrize("name", ["opencl", "cuda-cpu", "cupy"])
def test_a_steady_step_allocates_nothing_and_waits_for_nothing(name: str, kind: str) -> None:
    ours = EVERYWHERE[name]()
    cache, of = _opened(ours, kind), 1 if kind == "store" else None
    queries, keys, values, out = ours.place(_asks(), *_rows(1), np.zeros((1, 4, 1, 6), np.float32))
    cache.attend(queries, keys, values, HOW, out, of)
    for _ in range(30):
        cost = device_costs.cost(ours, lambda: cache.attend(queries, keys, values, HOW, out, of))
        assert cost == {"launches": 3, "device_to_device": ROW}


def test_a_batch_is_asked_in_two_launches_and_waits_for_nothing() -> None:
    ours = adapter()
    store = _opened(ours, "store")
    queries, out = ours.place(_asks(batch=2), np.zeros((2, 4, 1, 6), np.float32))
    store.attend_batch(queries, 1, HOW.splits, out)
    assert device_costs.cost(ours, lambda: store.attend_batch(queries, 1, HOW.splits, out)) == {"launches": 2}


def test_a_replay_is_one_launch_and_allocates_nothing() -> None:
    ours = adapter()
    store = _opened(ours, "store")
    work = store.capture_attend(0, 4, HOW.splits)
    crossing = {"host_to_device": ROW + 4 * 8 * 4, "device_to_host": 4 * 6 * 4}
    for _ in range(3):
        cost = device_costs.cost(ours, lambda: work.replay(_asks(), *_rows(1)))
        assert cost == {"launches": 1, "device_to_device": ROW, "synchronisations": 3, **crossing}


def test_what_is_on_the_device_can_be_replayed_and_its_outputs_are_the_callers() -> None:
    ours = adapter()
    store = _opened(ours, "store")
    work, there = store.capture_attend(1, 4, HOW.splits), ours.place(_asks(), *_rows(1))
    first = work.replay(*there)
    kept = ours.fetch(first).tobytes()
    assert ours.fetch(work.replay(*there)).tobytes() != kept == ours.fetch(first).tobytes()
    assert store.lengths() == [3, 5]


@pytest.mark.parametrize(("n", "queries"), [(2, 1), (1, 2), (2, 2), (0, 1)])
def test_a_replay_takes_one_row_and_one_query(n: int, queries: int) -> None:
    for store in (_opened(adapter(), "store"), _opened(Reference(), "store")):
        work = store.capture_attend(1, 4, HOW.splits)
        _refused("ATTN-24", lambda work=work: work.replay(_asks(queries), *_rows(n)))
        assert store.lengths() == [3, 3]


def test_an_output_belongs_to_the_caller() -> None:
    ours = adapter()
    cache = _opened(ours, "growing")
    resident = ours.place(_asks(), *_rows(1))
    made = cache.attend(*resident, HOW), cache.attend(_asks(), *_rows(1), HOW)
    kept = ours.fetch(made[0]).tobytes(), made[1].tobytes()
    cache.attend(*resident, HOW), cache.attend(_asks(), *_rows(1), HOW)
    assert (ours.fetch(made[0]).tobytes(), made[1].tobytes()) == kept


REFUSED: dict[str, tuple[Any, Any, Any, str]] = {
    "queries": (_asks(2), HOW, None, "ATTN-24"),
    "heads": (_asks()[:, :3], HOW, None, "ATTN-25"),
    "splits": (_asks(), Attention(splits=0), None, "ATTN-47"),
    "mask": (_asks(), Attention((Explicit(np.ones((1, 1, 1, 3), bool)),)), None, "MASK-12"),
    "mask heads": (_asks(), Attention((Explicit(np.ones((1, 2, 1, 4), bool)),)), None, "ATTN-27"),
    "window": (_asks(), Attention((Window(0),)), None, "MASK-13"),
    "output": (_asks(), HOW, np.zeros((1, 4, 1, 8), np.float32), "ATTN-28"),
    "read-only output": (_asks(), HOW, np.broadcast_to(np.float32(7), (1, 4, 1, 6)), "ATTN-28"),
}


@pytest.mark.parametrize("kind", ["growing", "ring", "store"])
@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_has_cost_nothing(kind: str, what: str) -> None:
    ours = adapter()
    cache, (queries, how, out, clause) = _opened(ours, kind), REFUSED[what]
    before = cache.lengths()
    cost = device_costs.cost(ours, lambda: _refused(clause, lambda: cache.attend(queries, *_rows(1), how, out, 0)))
    assert cost == {} and cache.lengths() == before


def _refused(clause: str, operation: Callable[[], Any]) -> None:
    with pytest.raises(Refused) as refused:
        operation()
    assert refused.value.clause == clause


# ---- When memory runs out ----

MASKED = Attention((Explicit(np.zeros((1, 1, 2, 5), np.float32)), Explicit(np.ones((1, 4, 2, 1), bool))), 3)
FAILING: dict[str, tuple[str, Callable[[Caches, Any], Any], int]] = {
    "growing": ("growing", lambda _, c: c.attend(_asks(2), *_rows(2), MASKED), 5),
    "growing again": ("growing", lambda _, c: c.attend(_asks(70), *_rows(70), HOW), 5),
    "ring": ("ring", lambda _, c: c.attend(_asks(), *_rows(1), HOW), 4),
    "ring, a chunk": ("ring", lambda _, c: c.attend(_asks(40), *_rows(40), HOW), 5),
    "store": ("store", lambda _, c: c.attend(_asks(2), *_rows(2), MASKED, None, 1), 5),
    "batch": ("store", lambda _, c: c.attend_batch(_asks(batch=2), 1, HOW.splits), 3),
    "capture": ("store", lambda _, c: c.capture_attend(1, 4, HOW.splits), 4),
}
"""On which kind of cache what is done, and how many allocations it makes at first."""


@pytest.mark.parametrize("operation", slow.one_in(3, FAILING))
def test_the_nth_allocation_fails(operation: str) -> None:
    expected = FAILING[operation][2]
    assert [_fails(operation, nth) for nth in range(expected + 1)] == [True] * expected + [False]


def _fails(operation: str, nth: int) -> bool:
    """Whether it ran out of memory; if so, that nothing has changed, and the next attend is right."""
    kind, do, _ = FAILING[operation]
    ours = Caches("scarce", Scarce(adapter().runtime), checks=True)
    cache, other = _opened(ours, kind), _opened(adapter(), kind)
    ours.space._blocks.clear()  # scratch space that the rows came through
    before, runtime = _seen(cache), ours.space.runtime
    runtime.left = nth
    failed = raises(lambda: do(ours, cache))
    runtime.left = 1 << 30
    if failed:
        assert _seen(cache) == before
        found, right = (c.attend(_asks(), *_rows(1), HOW, None, 1) for c in (cache, other))
        assert settled(found) == settled(right)
    return failed


def _seen(cache: Any) -> Any:
    gc.collect()
    pairs = [cache.read(layer) for layer in range(2)] if hasattr(cache, "layers") else [cache.read("state")]
    return cache.lengths(), [a.tobytes() for pair in pairs for a in pair], cache.held()
