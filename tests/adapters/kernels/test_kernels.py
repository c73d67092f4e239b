"""The kernels by themselves: against plain numpy, every byte of the target buffer compared."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kvgpu import kernels
from kvgpu.memory.buffers import GuardBroken, Rows, Workspace
from kvgpu.memory.cache_rows import Slots
from kvgpu.memory.layout import Geometry, Place, Span, move, put
from kvgpu.runtime import Runtime, Work
from kvgpu.runtimes.launch_shapes import ITEMS, cpu, gpu, rows_on_a_cpu
from kvgpu.runtimes.opencl import OpenCLRuntime, shared
from kvspec.geometry import Array, Config
from support.device import devices
from support.device.devices import adapter

SHAPES = {"a row an item": ("opencl", False), "a word an item": ("opencl", True), "cuda text": ("cuda-cpu", True)}


@pytest.fixture(params=SHAPES)
def runtime(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    on, wide = SHAPES[request.param]
    monkeypatch.setattr(devices, "ON", on)
    return adapter(wide).runtime


GEOMETRIES = [Geometry(3, 6, 2), Geometry(2, 12, 8), Geometry(2, 64, 32), Geometry(1, 4096, 16), Geometry(5, 1, 0)]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: f"words of {g.word}")
def test_rows_move_out_of_a_ring_and_nothing_else_changes(runtime: Runtime, geometry: Geometry) -> None:
    random = np.random.default_rng(geometry.k_bytes)
    for _ in range(20):
        source, target = _random_span(runtime, geometry, random), _random_span(runtime, geometry, random)
        target = target._replace(turn=0)
        rows = int(random.integers(1, min(source.wrap, target.wrap) + 1))
        given, before = (_bytes(runtime, span) for span in (source, target))
        move(runtime, geometry, rows, source, target)
        expected = _expected(geometry, rows, source, target, given, before)
        assert _bytes(runtime, target).tobytes() == expected.tobytes()
        assert _bytes(runtime, source).tobytes() == given.tobytes()


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: f"words of {g.word}")
def test_rows_put_in_slots_are_those_moved_there(runtime: Runtime, geometry: Geometry) -> None:
    random = np.random.default_rng(geometry.k_bytes)
    for _ in range(20):
        source, target = _random_span(runtime, geometry, random).place, _random_span(runtime, geometry, random)
        rows = int(random.integers(1, min(source.slots, target.wrap) + 1))
        given, before = (_bytes(runtime, span) for span in (source.span(), target))
        put(runtime, geometry, rows, source, target.place, target.first)
        expected = _expected(geometry, rows, source.span(), target, given, before)
        assert _bytes(runtime, target).tobytes() == expected.tobytes()


def test_rows_put_outside_the_slots_are_a_defect(runtime: Runtime) -> None:
    geometry = Geometry(1, 16, 16)
    source, target = (Rows(runtime, geometry, slots).place for slots in (2, 4))
    for rows, at in ((3, 0), (2, 3), (1, -1), (1, 4)):
        with pytest.raises(AssertionError):
            put(runtime, geometry, rows, source, target, at)


def _random_span(runtime: Runtime, geometry: Geometry, random: np.random.Generator) -> Span:
    """A ring somewhere in a block full of random bytes."""
    slots = int(random.integers(1, 12))
    values_at, total = geometry.packed(slots)
    block = runtime.allocate(total + 16)
    runtime.upload(random.integers(0, 256, total + 16, np.uint8), block)
    first = int(random.integers(0, slots))
    wrap = int(random.integers(1, slots - first + 1))
    return Place(block, block, 16, values_at + 16, slots).span(first, int(random.integers(0, wrap)), wrap)


def _bytes(runtime: Runtime, span: Span) -> Array:
    found: Array = runtime.download(span.place.keys, 0, span.place.keys.nbytes)[0]
    return found


def _expected(g: Geometry, rows: int, source: Span, target: Span, given: Array, before: Array) -> Array:
    """Row by row, as one would say it."""
    out = before.copy()
    for size, at, to in (
        (g.k_bytes, source.place.keys_at, target.place.keys_at),
        (g.v_bytes, source.place.values_at, target.place.values_at),
    ):
        for head in range(g.heads):
            for t in range(rows):
                a = at + (head * source.place.slots + source.first + (source.turn + t) % source.wrap) * size
                b = to + (head * target.place.slots + target.first + t) * size
                out[b : b + size] = given[a : a + size]
    return out


@pytest.mark.parametrize("config", [Config(), Config(k_dim=1, v_dim=1, kv_heads=1), Config(dtype="f32", v_dim=1)])
def test_new_rows_are_nan_and_lie_between_guards(runtime: Runtime, config: Config) -> None:
    rows = Rows(runtime, Geometry.of(config), 3)
    rows.check_guards()
    store = Slots(Workspace(runtime), config)
    store.rows = rows
    assert all(np.isnan(a.astype(np.float32)).all() for a in store.read(3))


@pytest.mark.parametrize("at", ["before the keys", "between keys and values", "behind the values"])
def test_a_write_outside_the_slots_is_found(runtime: Runtime, at: str) -> None:
    geometry = Geometry(2, 16, 16)
    rows = Rows(runtime, geometry, 2)
    outside = {"before the keys": -1, "between keys and values": 4, "behind the values": -1}[at]
    keys_at = rows.place.values_at + 64 if at == "behind the values" else rows.place.keys_at + 16 * outside
    fresh = Place.packed(runtime.allocate(32), geometry, 1)
    runtime.upload(np.zeros(32, np.uint8), fresh.keys)
    only_keys = Geometry(1, 16, 0)
    move(runtime, only_keys, 1, fresh.span(), Place(rows.block, rows.block, keys_at, 0, 1).span())
    with pytest.raises(GuardBroken, match=at):
        rows.check_guards()


def test_a_span_that_leaves_its_place_is_a_defect(runtime: Runtime) -> None:
    place = Rows(runtime, Geometry(1, 16, 16), 4).place
    for bad in (place.span(2, 0, 3), place.span(0, 4), place.span(-1), place.span(3)):
        with pytest.raises(AssertionError):
            move(runtime, Geometry(1, 16, 16), 2, bad, place.span())
    with pytest.raises(AssertionError):
        move(runtime, Geometry(1, 16, 16), 2, place.span(), place.span(0, 1))


def test_both_dialects_have_the_same_words_and_all_kernels() -> None:
    words = {d: re.findall(r"^(?:#define|typedef [\w ]+) (\w+)[(;\s]", _prelude(d), re.M) for d in ("cl", "cuda")}
    assert set(words["cuda"]) - set(words["cl"]) == {"AXIS"}
    assert set(words["cl"]) <= set(words["cuda"])
    for dialect in ("cl", "cuda"):
        text = kernels.source(dialect)
        several = "MOVE|PLACE|STEP|SCATTER|PAGE|LAYER|COPY|ATTEND|SCORE|ROPE|FOLD"
        made = set(re.findall(rf"^KERNEL ([a-z]\w*)\(|^#define (?:{several}) (\w+)$", text, re.M))
        assert {a or b for a, b in made} == set(kernels.KERNELS)


def _prelude(dialect: str) -> str:
    return kernels.text(f"prelude_{dialect}.h").replace(";", " ;")


@pytest.mark.parametrize(
    ("work", "shape"),
    [
        (Work(8, 1, 2, 2), ((8, 16, 1), (1, 2, 2))),
        (Work(17, 100, 8, 2), ((32, 4, 1), (25, 8, 2))),
        (Work(1, 1), ((1, 128, 1), (1, 1, 1))),
        (Work(1, 1, 100_000), ((1, 128, 1), (1, 65535, 1))),
    ],
)
def test_a_gpu_has_an_item_for_each_word(work: Work, shape: object) -> None:
    assert gpu(work) == shape


@pytest.mark.parametrize(
    ("work", "cores", "groups"),
    [
        (Work(8, 1, 2, 2), 2, (1, 2, 2)),
        (Work(8, 100, 8, 2), 2, (1, 8, 1)),
        (Work(8, 100, 3, 2), 2, (1, 3, 2)),
        (Work(8, 100, 1, 2), 2, (1, 1, 2)),
        (Work(8, 100, 1, 2), 16, (32, 1, 2)),
        (Work(8, 100, 8, 2), 16, (1, 8, 2)),
        (Work(8, 100), 2, (8, 1, 1)),
        (Work(8, 3), 16, (3, 1, 1)),
        (Work(8, 3, 9, 2), 2, (1, 8, 1)),
    ],
)
def test_a_cpu_has_an_item_for_each_head_and_splits_rows_where_cores_would_idle(
    work: Work, cores: int, groups: object
) -> None:
    assert cpu(work, ITEMS * cores) == ((1, 1, 1), groups)


def test_a_cpu_takes_a_row_with_all_heads_where_they_lie_side_by_side() -> None:
    assert rows_on_a_cpu(Work(8, 100, 3, 2)) == ((1, 1, 1), (100, 1, 2))
    runtime = shared("")
    assert runtime._shape("cast4_f16", Work(8, 100, 3, 2)) == ((1, 1, 1), (100, 1, 2))
    assert runtime._shape("move16", Work(8, 100, 3, 2)) == cpu(Work(8, 100, 3, 2), runtime.workers)
    wide = OpenCLRuntime(shape=gpu)
    assert wide._shape("cast4_f16", Work(8, 100, 3, 2)) == gpu(Work(8, 100, 3, 2))
