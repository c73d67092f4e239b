"""The row-shaped attention kernel for CPU devices, element by element against float64: see `row_bound`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from kvgpu.adapters import OpenCL, OpenCLFast
from kvgpu.caches.attention import Positions, Runs
from kvgpu.memory.device_arrays import fetched, placed
from kvgpu.memory.layout import Place
from kvgpu.runtimes import opencl, opencl_devices
from kvgpu.runtimes.fast import row_attention
from kvgpu.runtimes.fast.attention import Call, Geometry, Ragged
from kvgpu.runtimes.fast.row_attention import RowAttention
from kvgpu.runtimes.opencl import OpenCLRuntime
from kvspec.contract import Attention, Pair
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES, Array, Config
from kvspec.masks import Causal, Explicit
from support.device.attention_case import Case, cases, pages, positions
from support.device.row_bound import weighed
from support.slow import one_in


def exact(case: Case) -> tuple[Array, Array]:
    """The outputs in f64, and what they may be off by."""
    found = [_one(case, e, h, i) for e, h, i in np.ndindex(case.queries.shape[:3])]
    shape = *case.queries.shape[:3], case.v_dim
    outputs, bounds = (np.stack(each).reshape(shape) for each in zip(*found, strict=True))
    return outputs, bounds


def _one(case: Case, e: int, h: int, i: int) -> tuple[Array, Array]:
    seen = case.seen()[i]
    if not seen.any():
        return np.zeros(case.v_dim), np.zeros(case.v_dim)
    query = case.queries[e, h, i].astype(np.float64)
    return weighed(query, *(r[e, h // case.group, seen].astype(np.float64) for r in (case.keys, case.values)))


def geometry(case: Case, lie: str = "runs") -> Geometry:
    """What the kernel is compiled for."""
    heads = case.kv_heads * case.group
    return Geometry(case.dtype, case.k_dim, case.v_dim, heads, case.kv_heads, lie, case.together)


def attended(runtime: OpenCLRuntime, case: Case) -> Array:
    """What the kernel makes of it."""
    attention = RowAttention(runtime, geometry(case))
    keys, values = placed(runtime, *(case.laid(rows) for rows in (case.keys, case.values)))
    span = Place(keys.block, values.block, keys.at, values.at, case.slots).span(case.base, case.turn, case.wrap)
    nowhere = np.full((*case.queries.shape[:3], case.v_dim), np.nan, np.float32)
    queries, out = placed(runtime, case.queries, nowhere)
    rows = Runs.of(span, case.kv_heads * case.slots)
    attention.attend(Call(queries, rows, positions(runtime, case), out, case.causal, case.window, case.held))
    return fetched(out)


def paged(runtime: OpenCLRuntime, case: Case, slots: int) -> Array:
    """The same of rows in pages of a few slots, in any order of pages; NaN in all other slots."""
    attention = RowAttention(runtime, geometry(case, "pages"))
    nowhere = np.full((*case.queries.shape[:3], case.v_dim), np.nan, np.float32)
    queries, out = placed(runtime, case.queries, nowhere)
    rows = pages(runtime, case, slots)
    attention.attend(Call(queries, rows, positions(runtime, case), out, case.causal, case.window, case.held))
    return fetched(out)


def check(runtime: OpenCLRuntime, case: Case, slots: int | None = None) -> None:
    """Every element within its bound; rows in runs, or in pages of this many slots."""
    found = attended(runtime, case) if slots is None else paged(runtime, case, slots)
    outputs, bound = exact(case)
    off = np.abs(found - outputs)
    assert (off <= bound).all(), (
        case,
        float(np.nanmax(off / np.maximum(bound, 1e-300))),
        found[~(off <= bound)][:4],
    )


@pytest.fixture(scope="module")
def runtime() -> OpenCLRuntime:
    return opencl.shared(os.environ.get(opencl_devices.SELECT, ""))


@pytest.fixture(params=[1 << 20, 1], ids=["whole", "split"])
def worth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs as they are split for real, and split into as many pieces as there may be."""
    monkeypatch.setattr(row_attention, "WORTH_SPLITTING", request.param)


GEOMETRIES = [
    ("f32", 64, 64, 1), ("f16", 80, 80, 2), ("bf16", 96, 96, 4), ("f32", 128, 128, 4), ("f16", 128, 128, 7),
    ("bf16", 256, 256, 8), ("f16", 256, 64, 1), ("f32", 5, 17, 2), ("bf16", 5, 5, 1), ("bf16", 17, 80, 4),
    ("f16", 17, 5, 9), ("f32", 96, 128, 16),
]  # fmt: skip


def shown(geometry: tuple[str, int, int, int]) -> str:
    return "-".join(map(str, geometry))


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("geometry", one_in(5, [(g,) for g in GEOMETRIES]), ids=shown)
def test_every_element_is_within_its_bound(runtime: OpenCLRuntime, geometry: tuple[str, int, int, int]) -> None:
    for case in cases(*geometry, 8, some=True):
        check(runtime, case)


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("slots", [1, 5, 16, 64])
@pytest.mark.parametrize(
    "geometry", one_in(2, [(g,) for g in GEOMETRIES[::3]]), ids=lambda g: "-".join(map(str, g))
)
def test_rows_in_pages(runtime: OpenCLRuntime, geometry: tuple[str, int, int, int], slots: int) -> None:
    for case in cases(*geometry, 4, some=True):
        check(runtime, case, slots)


@pytest.mark.usefixtures("worth")
def test_lengths_from_one_row_on(runtime: OpenCLRuntime) -> None:
    for held in (*range(1, 70), *range(70, 301, 7)):
        check(runtime, Case(group=2, held=held, wrap=held, turn=held // 3, seed=held))


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("larger", [1e-30, 1e4, 1e30])
def test_scores_of_any_size(runtime: OpenCLRuntime, larger: float) -> None:
    """The largest weighs everything, or all weigh the same; nothing overflows."""
    check(runtime, Case(k_dim=17, v_dim=5, group=2, held=150, wrap=150, turn=60, larger=larger, count=3))


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("on_device", [False, True])
def test_a_query_that_sees_nothing_gives_zeros(runtime: OpenCLRuntime, on_device: bool) -> None:
    case = Case(group=2, held=2, wrap=2, count=5, on_device=on_device)
    assert not attended(runtime, case)[:, :, :3].any()
    check(runtime, case)


@pytest.mark.parametrize("poisoned", ["keys", "values"])
def test_nan_is_seen_where_it_may_be_seen_and_nowhere_else(runtime: OpenCLRuntime, poisoned: str) -> None:
    case = Case(group=2, held=40, wrap=40, count=4)
    getattr(case, poisoned)[:, :, 38] = np.nan
    missing = np.isnan(attended(runtime, case))
    assert not missing[:, :, :2].any() and missing[:, :, 2:].all()


def test_a_steady_decode_allocates_nothing_and_waits_for_nothing(runtime: OpenCLRuntime, monkeypatch: Any) -> None:
    monkeypatch.setattr(row_attention, "WORTH_SPLITTING", 1)
    monkeypatch.setattr(runtime, "workers", 8)  # a simulator has one, and splits nothing
    case = Case(group=2, held=200, wrap=200)
    attention = RowAttention(runtime, geometry(case))
    keys, values, queries, out = placed(runtime, case.keys, case.values, case.queries, case.queries)
    rows = Runs(Place(keys.block, values.block, keys.at, values.at, 200), 200)
    attention.attend(Call(queries, rows, Positions(0, 100), out))
    before = runtime.meter.reading()
    for end in range(100, 201, 20):
        attention.attend(Call(queries, rows, Positions(0, end), out))
    assert runtime.meter.since(before) == {"launches": 12}


def test_ragged_queries_are_refused(runtime: OpenCLRuntime) -> None:
    case = Case()
    queries, keys, values = placed(runtime, case.queries[0], case.keys, case.values)
    rows = Runs(Place(keys.block, values.block, keys.at, values.at, 10), 10)
    call = Call(queries, rows, Positions(0, 10), queries, ragged=Ragged(keys.block, 1))
    with pytest.raises(ValueError, match="RowAttention takes no ragged queries"):
        RowAttention(runtime, geometry(case)).attend(call)


def test_captured_work_reads_the_length_anew(runtime: OpenCLRuntime, monkeypatch: Any) -> None:
    monkeypatch.setattr(row_attention, "WORTH_SPLITTING", 1)
    case = Case(group=2, held=64, wrap=64, causal=False)
    attention = RowAttention(runtime, geometry(case))
    keys, values, queries, out = placed(runtime, case.keys, case.values, case.queries, case.queries)
    ends = runtime.allocate(8)
    runtime.upload(np.array([1], np.int64), ends)
    rows = Runs(Place(keys.block, values.block, keys.at, values.at, 64), 64)
    where = Positions(lengths=ends)
    attention.attend(Call(queries, rows, where, out, most=64))
    captured = runtime.capture(lambda: attention.attend(Call(queries, rows, where, out, most=64)))
    for end in (64, 3):
        runtime.upload(np.array([end], np.int64), ends)
        captured.replay()
        shorter = Case(group=2, held=end, wrap=end)
        shorter.keys, shorter.values, shorter.queries = case.keys[:, :, :end], case.values[:, :, :end], case.queries
        outputs, bound = exact(shorter)
        assert (np.abs(fetched(out) - outputs) <= bound).all()


NARROW = Case("f16", 5, 17, 3, held=20, wrap=20, turn=7), Case("f32", 16, 16, 4, held=9, wrap=12, count=2)
WIDE = Case("f16", 6, 18, 3, held=20, wrap=20, turn=7), Case("f32", 8, 16, 4, held=9, wrap=12, count=2)


@pytest.mark.parametrize(("lanes", "cases"), [(8, NARROW), (16, WIDE)], ids=["8 lanes", "16 lanes"])
def test_on_a_simulator(lanes: int, cases: tuple[Case, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Oclgrind runs the same text; it would say so if anything were read or written outside a buffer."""
    runtime = opencl.shared("oclgrind")
    monkeypatch.setattr(runtime, "lanes", lanes)
    for case in cases:
        check(runtime, case)
        check(runtime, case, 4)


def test_a_device_that_is_not_for_it_is_refused(runtime: OpenCLRuntime, monkeypatch: Any) -> None:
    monkeypatch.setattr(runtime, "cpu", False)
    with pytest.raises(CannotRun, match="CPU runtime of OpenCL"):
        RowAttention(runtime, geometry(Case()))


def test_the_adapter_attends_by_it_unless_a_mask_comes_as_an_array(runtime: OpenCLRuntime) -> None:
    fast_one, strict_one = OpenCLFast(), OpenCL()
    config, random = Config(k_dim=8, v_dim=6, kv_heads=2, step=8), np.random.default_rng(0)
    rows = Pair(*(random.standard_normal(config.shape(kind, 20)).astype(DTYPES[config.dtype]) for kind in "kv"))
    queries = random.standard_normal((1, 4, 20, config.k_dim), np.float32)
    for through, alike in (((Causal(),), False), ((Causal(), Explicit(np.ones((1, 1, 20, 1), bool))), True)):
        caches: list[Any] = [one.open("growing", config) for one in (fast_one, strict_one)]
        found, strict = (cache.attend(queries, *rows, Attention(through)) for cache in caches)
        assert np.abs(found - strict).max() < 1e-5
        assert (found.tobytes() == strict.tobytes()) == alike
    assert fast_one.runtime.knows("attend_rows_runs_f16_8_6_2_4")  # type: ignore[attr-defined]


def test_the_adapter_captures_it_once_it_was_made(runtime: OpenCLRuntime) -> None:
    """Nothing can be allocated while capturing: the first capture is of the strict kernels."""
    config, random = (
        Config(layers=1, max_len=8, k_dim=24, v_dim=8, kv_heads=1, dtype="f32"),
        np.random.default_rng(0),
    )
    queries, keys, values = (random.standard_normal((1, 1, 1, n), np.float32) for n in (24, 24, 8))
    adapter = OpenCLFast()
    for made in (False, True):
        store: Any = adapter.open("store", config)
        assert adapter.runtime.knows("attend_rows_runs_f32_24_8_1_1") == made  # type: ignore[attr-defined]
        captured = store.capture_attend(0, 1)
        assert np.abs(captured.replay(queries, keys, values) - values).max() < 1e-6
        store.attend(queries, keys, values, Attention(), of=0)
