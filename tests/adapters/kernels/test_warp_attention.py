"""The attention kernel for tensor cores, emulated on the CPU, element by element within the bound of ATTN-44."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kvgpu.adapters import CudaCPU, CudaCPUFast
from kvgpu.caches.attention import Positions, Runs
from kvgpu.memory.device_arrays import fetched, placed
from kvgpu.memory.layout import Place
from kvgpu.runtimes.fast import warp_attention, warp_kernels
from kvgpu.runtimes.fast.attention import Call, Geometry
from kvgpu.runtimes.fast.warp_attention import WarpAttention
from kvspec.contract import Attention, Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, Config
from kvspec.masks import Causal, Explicit
from support.device.attention_case import Case, cases
from support.device.warp_cases import attended, check, geometry, plant, runtime, worst, wrong_of
from support.slow import one_in


@pytest.fixture(params=[1 << 20, 16], ids=["whole", "split"])
def worth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions in one split, or in as many splits as there may be."""
    monkeypatch.setattr(warp_attention, "WORTH_SPLITTING", request.param)


GEOMETRIES = [
    ("bf16", 128, 128, 8), ("f16", 64, 64, 1), ("bf16", 96, 96, 4), ("f16", 128, 128, 16), ("bf16", 256, 256, 7),
    ("f16", 256, 64, 12), ("bf16", 32, 160, 3), ("f16", 32, 32, 20), ("f32", 128, 128, 8), ("f32", 32, 128, 3),
    ("f32", 64, 32, 20),
]  # fmt: skip


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("geometry", one_in(3, [(g,) for g in GEOMETRIES]), ids=lambda g: "-".join(map(str, g)))
def test_every_element_is_within_the_bound(geometry: tuple[str, int, int, int]) -> None:
    for case in cases(*geometry, 6):
        check(case)


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("slots", one_in(2, [5, 1, 16, 48]))
@pytest.mark.parametrize(
    "geometry", one_in(3, [(GEOMETRIES[i],) for i in (1, 3, 10)]), ids=lambda g: "-".join(map(str, g))
)
def test_rows_in_pages(geometry: tuple[str, int, int, int], slots: int) -> None:
    for case in cases(*geometry, 4):
        check(case, slots)


@pytest.mark.usefixtures("worth")
def test_lengths_from_one_row_on() -> None:
    for held in (*range(1, 70, 3), *range(70, 301, 37)):
        check(Case("f16", 32, 32, group=2, held=held, wrap=held, turn=held // 3, seed=held))


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("larger", [1e-40, 1e-30, 1e4, 1e30])
def test_scores_of_any_size(dtype: str, larger: float) -> None:
    """The largest weighs everything, or all weigh the same; nothing overflows, and no query is lost."""
    check(Case(dtype, 32, 32, group=2, held=150, wrap=150, turn=60, larger=larger))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_queries_are_not_rounded(dtype: str) -> None:
    """Keys of elements near 30 make scores near 5000, of which a 16-bit query would lose whole numbers."""
    case = Case(dtype, 32, 32, group=2, held=50, wrap=50)
    case.keys = (case.keys.astype(np.float32) * 30).astype(DTYPES[dtype])
    check(case)
    rounded = Case(dtype, 32, 32, group=2, held=50, wrap=50)
    rounded.keys, rounded.queries = case.keys, case.queries.astype(DTYPES[dtype]).astype(np.float32)
    assert worst(case, attended(runtime(), rounded)) > 1.0


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("on_device", [False, True])
def test_a_query_that_sees_nothing_gives_zeros(on_device: bool) -> None:
    case = Case("f16", 32, 32, group=2, held=2, wrap=2, count=5, together=5, on_device=on_device)
    assert not attended(runtime(), case)[:, :, :3].any()
    check(case)


@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("poisoned", ["keys", "values"])
def test_what_is_not_finite_is_seen_where_it_may_be_seen_and_nowhere_else(poisoned: str, poison: float) -> None:
    case = Case("f16", 32, 32, group=2, held=40, wrap=40, count=4, together=4)
    getattr(case, poisoned)[:, :, 38] = poison
    finite = np.isfinite(attended(runtime(), case))
    assert finite[:, :, :2].all() and not finite[:, :, 2:].any()


def test_lengths_that_differ_are_read_as_replays_find_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture holds when the lengths on the device change; each replay leaves counters of zeros."""
    monkeypatch.setattr(warp_attention, "WORTH_SPLITTING", 16)
    case = Case("f16", 32, 32, group=2, entries=2, held=64, wrap=64, causal=False)
    attention = WarpAttention(runtime(), geometry(case, "runs"))
    keys, values, queries, out = placed(runtime(), case.keys, case.values, case.queries, case.queries)
    ends = runtime().allocate(16)
    rows = Runs(Place(keys.block, values.block, keys.at, values.at, 64), 64)
    work = lambda: attention.attend(Call(queries, rows, Positions(lengths=ends), out, most=64))  # noqa: E731
    captured = runtime().capture(work)
    for lengths in ((64, 3), (17, 64), (1, 50), (0, 16)):
        runtime().upload(np.array(lengths, np.int64), ends)
        captured.replay()
        for entry, end in enumerate(lengths):
            alone = Case("f16", 32, 32, group=2, held=end, wrap=end)
            one = slice(entry, entry + 1)
            alone.keys, alone.values, alone.queries = (
                case.keys[one, :, :end], case.values[one, :, :end], case.queries[one]
            )  # fmt: skip
            assert worst(alone, fetched(out)[one]) <= 1.0
    counters = runtime().download(attention._parts, 0, 4 * runtime().workers)
    assert not counters.any()


PLANTED: dict[str, tuple[str, str, str]] = {
    "a copy that nobody waited for": ("runs", "arrived<UNITS - 2>();", "arrived<UNITS - 1>();"),
    "lanes that read before they met": ("runs", "    __syncwarp();\n    FETCH(i + UNITS", "    FETCH(i + UNITS"),
    "chunks that change places otherwise": ("runs", "(at ^ pairs % near", "(at + pairs % near"),
    "a window one too wide": ("runs", "behind - window,", "behind - 1 - window,"),
    "a join that forgets a split": ("runs", "from + lane < splits;", "from + lane < splits - 1;"),
    "the second piece a row too late": ("runs", "p < turn ? base : behind", "p < turn ? base : behind + 1"),
    "the second piece begins a row too late": ("runs", "p < turn ?", "p <= turn ?"),
    "a counter that is not set back": ("runs", "atomicInc((u32 *)parts + slot, (u32)splits - 1)",
                                       "atomicAdd((u32 *)parts + slot, 1)"),
    "the row beside in a page": ("pages", "(u32)p % (u32)slots", "((u32)p % (u32)slots ^ 1)"),
    "a query in too few parts": ("runs", "part < PARTS; ++part) {", "part < 1; ++part) {"),
    "queries in too few parts, taken for 16-bit ones": ("runs", "if (left) score", "if (false) score"),
    "sums that stay when the maximum grows": ("runs", "a[e][j][i] *= less[e][i & 1]", "a[e][j][i] *= 1.0f"),
    "a warp that counts twice": ("runs", "l += less * warp_l[w][column]", "l += less * warp_l[w / 2][column]"),
    "values of another query's rows": ("runs", "v[2] &= far, v[3] &= far;", "v[2] &= far;"),
}  # fmt: skip
"""What was planted: where rows lie, a piece of the kernel, and what stands there instead."""


@pytest.mark.parametrize("bug", one_in(4, PLANTED))
def test_a_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warp_attention, "WORTH_SPLITTING", 128)
    lie, right, wrong = PLANTED[bug]
    case = Case("bf16", 64, 64, group=2, held=288, wrap=288, turn=100, window=270, count=2, together=2)
    if "few parts" in bug:
        case = Case("f16", 32, 32, group=2, held=50, wrap=50)
    case.keys = (case.keys.astype(np.float32) * (30 if "few parts" in bug else 3)).astype(DTYPES[case.dtype])
    if "another query" in bug:
        case.values[:, :, -1] = np.nan
    assert not wrong_of(case, 16 if lie == "pages" else None)
    plant(monkeypatch, right, wrong)
    assert wrong_of(case, 16 if lie == "pages" else None)


@pytest.fixture
def many_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that splits 90 tiles of one kv head over as many blocks: they are joined 8 to 32 at a time."""
    monkeypatch.setattr(warp_attention, "WORTH_SPLITTING", 16)
    for name, value in (("workers", 90), ("_kernels", {})):
        monkeypatch.setattr(runtime(), name, value)


def of_many_tiles(width: int) -> Case:
    case = Case("bf16", 32, width, kv_heads=1, group=3, held=1440, wrap=1440, turn=100)
    case.keys = (case.keys.astype(np.float32) * 3).astype(DTYPES[case.dtype])
    return case


@pytest.mark.usefixtures("many_splits")
@pytest.mark.parametrize("width", [32, 96, 224])
def test_more_splits_than_lanes_are_joined(width: int) -> None:
    check(of_many_tiles(width))


JOINS = {
    "sums that stay when the maximum of splits grows": ("a[j] *= scale;", ""),
    "a weight that stays": ("l = l * scale +", "l = l +"),
    "splits that nobody loads": ("from += AT_ONCE", "from += 2 * AT_ONCE"),
    "the first splits alone": ("from < splits; from += AT_ONCE", "from < AT_ONCE; from += AT_ONCE"),
    "the weight of the split before": ("weight, i)", "weight, max(i - 1, 0))"),
}


@pytest.mark.usefixtures("many_splits")
@pytest.mark.parametrize("bug", one_in(2, JOINS))
def test_a_bug_of_joining_many_splits_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, *JOINS[bug])
    assert wrong_of(of_many_tiles(96))


def test_memory_that_no_launch_asked_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warp_attention, "unit_bytes", lambda geometry: 4096)
    monkeypatch.setattr(runtime(), "_kernels", {})
    with pytest.raises(RuntimeError, match=r"attend_warps_runs_f16_64_64_2_1: byte \d+ of shared memory, of which"):
        attended(runtime(), Case("f16", 64, 64, group=2, held=100, wrap=100))


def test_the_adapter_attends_by_it_unless_a_mask_comes_as_an_array() -> None:
    fast, strict = CudaCPUFast(), CudaCPU()
    config, random = Config(k_dim=32, v_dim=32, kv_heads=2, step=8), np.random.default_rng(0)
    rows = Pair(*(random.standard_normal(config.shape(kind, 20)).astype(DTYPES[config.dtype]) for kind in "kv"))
    queries = random.standard_normal((1, 4, 20, config.k_dim), np.float32)
    for through, alike in (((Causal(),), False), ((Causal(), Explicit(np.ones((1, 1, 20, 1), bool))), True)):
        caches: list[Any] = [one.open("growing", config) for one in (fast, strict)]
        found, same = (cache.attend(queries, *rows, Attention(through)) for cache in caches)
        assert np.abs(found - same).max() < 2e-3
        assert (found.tobytes() == same.tobytes()) == alike


def test_a_steady_decode_is_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warp_attention, "WORTH_SPLITTING", 16)
    case = Case("f16", 32, 32, group=2, held=200, wrap=200)
    attention = WarpAttention(runtime(), geometry(case, "runs"))
    keys, values, queries, out = placed(runtime(), case.keys, case.values, case.queries, case.queries)
    rows = Runs(Place(keys.block, values.block, keys.at, values.at, 200), 200)
    before = runtime().meter.reading()
    for end in range(100, 201, 20):
        attention.attend(Call(queries, rows, Positions(0, end), out))
    assert runtime().meter.since(before) == {"launches": 6}


def test_the_emulated_adapter_takes_only_rows_that_it_is_for() -> None:
    with pytest.raises(Unsupported):
        CudaCPUFast().open("growing", Config(k_dim=40, v_dim=32))
    for dtype in DTYPES:
        CudaCPUFast().open("growing", Config(k_dim=32, v_dim=32, dtype=dtype))
    wide = Geometry("f32", 160, 32, 8, 1)
    assert not warp_attention.taken(wide) and warp_attention.taken(wide._replace(dtype="bf16"))
    assert warp_kernels.chosen(wide._replace(k_dim=64), 40).queries == 1, "for f32 there is no kernel for many"
