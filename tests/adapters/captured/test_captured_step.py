"""A captured step of all layers: replay by replay it is what layers do one by one, and the host only replays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kvgpu.adapter import Caches
from kvgpu.adapters import CudaCPU, CudaCPUFast
from kvgpu.captured.step import CapturedStep, Line, Step
from kvgpu.memory.device_arrays import fetched
from kvgpu.memory.layout import Geometry, Place, move
from kvspec.contract import Attention, Pair, Rope
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Array, Config
from kvspec.rope.scaling import YaRN
from support.device.devices import adapter

LAYERS, HEADS = 3, 4
CONFIG = Config(k_dim=32, v_dim=32, kv_heads=2, layers=LAYERS, max_len=9)
ROPE = Rope(dims=16, base=500)
SCALED = Rope(scaling=YaRN(4, 64, 8, 1))


@pytest.fixture(params=["opencl", "cuda-cpu", "cuda-cpu-fast"])
def caches(request: pytest.FixtureRequest) -> Caches:
    made: dict[str, Any] = {"opencl": adapter, "cuda-cpu": CudaCPU, "cuda-cpu-fast": CudaCPUFast}
    found: Caches = made[request.param]()
    return found


def opened(caches: Caches, held: int = 4) -> Any:
    """A store whose layers hold rows, the same ones each time."""
    store: Any = caches.open("store", CONFIG)
    random = np.random.default_rng(1)
    store.append(*(random.standard_normal((LAYERS, 2, held, 32)).astype(np.float16) for _ in "kv"))
    return store


def inputs(n: int) -> Iterator[tuple[Array, Pair]]:
    """Queries of the first layer and rows of all, for some steps."""
    random = np.random.default_rng(2)
    for _ in range(n):
        queries = random.standard_normal((LAYERS, HEADS, 1, 32), np.float32)
        yield queries, Pair(*(random.standard_normal((LAYERS, 2, 1, 32)).astype(DTYPES["f16"]) for _ in "kv"))


def by_layers(store: Any, queries: Array, rows: Pair, how: Attention) -> Array:
    """A step of a small model: the queries of a layer are the outputs of the layer before."""
    found = [queries[:1]]
    for layer in range(LAYERS):
        one = slice(layer, layer + 1)
        found.append(store.attend(found[-1], rows.keys[one], rows.values[one], how, of=layer))
    return np.concatenate(found[1:])


def captured(store: Any, turn: Rope | None, splits: int = 1) -> CapturedStep:
    """The same model as a captured step."""
    geometry = Geometry(HEADS, 32 * 4, 0)

    def between(step: Step, layer: int) -> None:
        if layer:
            source, to = step.of_layer(step.out, layer - 1), step.of_layer(step.queries, layer)
            places = (Place(r.block, r.block, r.at, r.at, 1).span() for r in (source, to))
            move(store.space.runtime, geometry, 1, *places)

    return CapturedStep(store, HEADS, turn, splits, between)


@pytest.mark.parametrize(
    "turn", [None, ROPE, Rope(), SCALED], ids=["plain", "rope of a part", "rope", "scaled rope"]
)
@pytest.mark.parametrize("splits", [1, 3])
def test_several_steps_are_what_layers_do_one_by_one(caches: Caches, turn: Rope | None, splits: int) -> None:
    one, other = opened(caches), opened(caches)
    step = captured(one, turn, splits)
    meter = one.space.runtime.meter
    for queries, rows in inputs(5):
        step.take(queries, *rows)
        before = meter.reading()
        step.replay()
        spent = meter.since(before)
        assert spent.pop("device_to_device") > 0 and spent == {"launches": 1}
        wanted = by_layers(other, queries, rows, Attention(rope=turn, splits=splits))
        assert fetched(step.out).tobytes() == wanted.tobytes()
    assert one.lengths() == other.lengths() == [9] * LAYERS
    for layer in range(LAYERS):
        for mine, its in zip(one.read(layer), other.read(layer), strict=True):
            assert mine.tobytes() == its.tobytes()


@pytest.mark.parametrize(
    ("which", "change", "words"),
    [
        ("queries", lambda a: np.concatenate((a, a)), r"queries: .* float32 \[3, 4, 1, 32\], not float32 \[6, 4,"),
        ("queries", lambda a: a.astype(np.float64), "not float64"),
        ("keys", lambda a: np.repeat(a, 2, 2), r"keys: .* float16 \[3, 2, 1, 32\], not float16 \[3, 2, 2, 32\]"),
        ("values", lambda a: a.astype(np.float32), "values: .* not float32"),
    ],
)
def test_a_step_takes_what_it_was_captured_for(caches: Caches, which: str, change: Any, words: str) -> None:
    step = CapturedStep(opened(caches), HEADS, ROPE)
    ((queries, rows),) = inputs(1)
    taken = {"queries": queries, "keys": rows.keys, "values": rows.values}
    with pytest.raises(ValueError, match=words):
        step.take(**(taken | {which: change(taken[which])}))
    step.take(**taken)


def test_without_rope_layers_may_differ_in_length(caches: Caches) -> None:
    one, other = opened(caches), opened(caches)
    for store in (one, other):
        store.set_length(1, 2)
    step = captured(one, None)
    for queries, rows in inputs(2):
        step.take(queries, *rows)
        step.replay()
        assert fetched(step.out).tobytes() == by_layers(other, queries, rows, Attention()).tobytes()
    assert one.lengths() == [6, 4, 6]


def test_the_launches_of_a_step(caches: Caches) -> None:
    """One finds the position's line; then each layer's rows are turned, appended and attended to."""
    step = CapturedStep(opened(caches), HEADS, ROPE)
    attends = 1 if isinstance(caches, CudaCPUFast) else 2
    assert len(step.work._recording.launches) == 1 + LAYERS * (2 + attends)  # type: ignore[attr-defined]


def test_a_rollback_between_replays_is_followed(caches: Caches) -> None:
    one, other = opened(caches), opened(caches)
    step = captured(one, ROPE)
    for i, (queries, rows) in enumerate(inputs(6)):
        for store in (one, other) if i % 2 else ():
            store.rollback(3)
        step.take(queries, *rows)
        step.replay()
        assert fetched(step.out).tobytes() == by_layers(other, queries, rows, Attention(rope=ROPE)).tobytes()


def test_a_store_that_is_full_made_anew_or_uneven_is_refused(caches: Caches) -> None:
    store = opened(caches, held=9)
    step = CapturedStep(store, HEADS, ROPE)
    with pytest.raises(Refused, match="append of 1 rows: layer 0 holds 9"):
        step.replay()
    store.rollback(5)
    store.set_length(1, 4)
    with pytest.raises(ValueError, match="layers of one length, not 4 to 5"):
        step.replay()
    store.init(CONFIG.changed(max_len=10))
    with pytest.raises(Refused) as refused:
        step.replay()
    assert refused.value.clause == "ATTN-22"


@pytest.mark.parametrize("dims", [2, 16, 30])
def test_the_line_of_every_position(caches: Caches, dims: int) -> None:
    store = opened(caches)
    runtime = store.space.runtime
    line = Line(runtime, 9, dims, Rope())
    for n in range(9):
        store.set_length(0, n)
        line.find(store.layers.lengths)
        there = line.table(np.zeros(1), dims, Rope())
        wanted = store.space.tables.table(np.array([n]), dims, Rope())
        found, same = (runtime.download(block, 0, dims * 4).tobytes() for block in (there, wanted))
        assert found == same
