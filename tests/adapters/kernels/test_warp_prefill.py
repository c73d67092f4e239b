"""The attention kernel for many queries, emulated on the CPU, element by element within the bound of ATTN-44."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from kvgpu.adapters import CudaCPU, CudaCPUFast
from kvgpu.runtimes.fast import warp_kernels, warp_prefill
from kvgpu.runtimes.fast.attention import Geometry
from kvspec.contract import Attention, Pair
from kvspec.geometry import DTYPES, Config
from support.device.attention_case import Case, cases
from support.device.warp_cases import (
    attended,
    check,
    not_finite,
    of_many_queries,
    plant,
    runtime,
    with_high_scores,
    wrong_of,
)
from support.slow import one_in


@pytest.fixture(params=[1 << 20, 32], ids=["whole", "split"])
def worth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions in one split, or in as many splits as there may be."""
    monkeypatch.setattr(warp_prefill, "WORTH_SPLITTING", request.param)


prefill = partial(of_many_queries, warp_prefill.QUERIES)
"""Makes a case for this kernel."""


GEOMETRIES = [
    ("bf16", (128, 128), 4), ("f16", (32, 32), 1), ("bf16", (96, 64), 7), ("f16", (256, 256), 2),
    ("f16", (32, 256), 3), ("bf16", (192, 160), 5), ("f16", (64, 64), 20), ("bf16", (64, 32), 70),
]  # fmt: skip


def many(dtype: str, dims: tuple[int, int], group: int) -> Iterator[Case]:
    """Cases of a geometry, of all kinds: a tile may begin and end within a query, or not be full."""
    counts = (2, 17, 16, 40) if group > 4 else (63, 90, 5, 65)
    for case, count in zip(cases(dtype, *dims, group, len(counts)), counts, strict=True):
        yield replace(case, count=count, together=warp_prefill.QUERIES)


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("geometry", one_in(8, [(g,) for g in GEOMETRIES]), ids=str)
def test_every_element_is_within_the_bound(geometry: tuple[str, tuple[int, int], int]) -> None:
    for case in many(*geometry):
        check(case)


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("slots", one_in(4, [5, 16, 1, 48]))
@pytest.mark.parametrize("geometry", GEOMETRIES[1:3], ids=str)
def test_rows_in_pages(geometry: tuple[str, tuple[int, int], int], slots: int) -> None:
    for case in many(*geometry):
        check(case, slots)


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("count", [1, 63, 64, 65, 128, 129])
def test_tiles_that_are_not_full(count: int) -> None:
    """One query more or less than a tile has, over as many rows, over one more, and over fewer than it has."""
    for held in (count, count + 1, max(1, count - 5), count + 31, count + 32):
        check(prefill("f16", (32, 32), 1, count, held, turn=held // 3))


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("window", [1, 15, 16, 17, 31, 33, 64])
def test_windows_that_end_in_the_middle_of_a_stage(window: int) -> None:
    check(prefill("f16", (32, 32), 2, 70, 150, window=window))
    check(prefill("f16", (32, 32), 2, 70, 150, window=window, causal=False))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("sixteen", [False, True], ids=["f32", "16 bits"])
def test_queries_are_not_rounded(dtype: str, sixteen: bool) -> None:
    """Keys of elements near 30 make scores near 5000, of which a 16-bit query would lose whole numbers. Queries
    that have 16 bits themselves have one part, and the others are not multiplied."""
    check(with_high_scores(prefill(dtype, (32, 32), 2, 40, 50), sixteen))


@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("poisoned", ["keys", "values"])
def test_what_is_not_finite_is_seen_where_it_may_be_seen_and_nowhere_else(poisoned: str, poison: float) -> None:
    case = prefill("bf16", (32, 32), 2, 40, 100, window=30)
    assert not_finite(case, poisoned, poison, 75) == list(range(15, 40))


def test_a_query_that_sees_nothing_gives_zeros() -> None:
    case = prefill("f16", (32, 32), 2, 70, 3)
    assert not attended(runtime(), case)[:, :, :67].any()
    check(case)


PLANTED: dict[str, tuple[str, str]] = {
    "a copy that nobody waited for": ("    arrived<0>();\n", ""),
    "warps that do not meet": ("    __syncthreads(); /* it is", "    /* it is"),
    "a stage that overwrites the one in use": ("two + (i + 1 & 1)", "two + (i & 1)"),
    "a stage that begins a tile late": ("rows.low / STAGE,", "(rows.low + TILE) / STAGE,"),
    "a column of the block before": ("begins + warp * COLUMNS}", "begins + warp * COLUMNS - (begins > 0)}"),
    "a warp that stops too early": ("(p < any_stop", "(p + TILE < any_stop"),
    "a warp that begins too late": ("p + STAGE > any_from", "p + TILE > any_from"),
    "a stage taken for whole": ("p + STAGE <= all_stop", "p + TILE <= all_stop"),
    "a window's end taken for whole": ("whole = p >= all_from", "whole = p + TILE >= all_from"),
    "keys of one tile for all": ("unit + t * UNIT_BYTES, k", "unit, k"),
    "parts of queries that others overwrite": ("STAGE_BYTES + warp * OTHER", "STAGE_BYTES + 0 * OTHER"),
    "queries taken for 16-bit ones": ("= !__all_sync(ALL, of.left == 0);", "= false;"),
    "a join of too few columns": ("join<BLOCK_COLUMNS>", "join<BLOCK_COLUMNS - 1>"),
    "chunks that change places otherwise": ("(at ^ pairs % near * 32)", "(at + pairs % near * 32)"),
}  # fmt: skip
"""What was planted: a piece of the kernel, and what stands there instead."""


@pytest.mark.parametrize("bug", one_in(4, PLANTED))
def test_a_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warp_prefill, "WORTH_SPLITTING", 64)
    case = prefill("bf16", (64, 64), 3, 40, 300, window=200, turn=100)
    case.keys = (case.keys.astype(np.float32) * (30 if "queries" in bug else 3)).astype(DTYPES[case.dtype])
    assert not wrong_of(case)
    plant(monkeypatch, *PLANTED[bug])
    assert wrong_of(case)


@pytest.mark.parametrize(("group", "fit"), [(1, 16), (4, 4), (16, 1), (20, 1)])
def test_it_is_for_more_queries_than_fill_the_columns_of_the_other(group: int, fit: int) -> None:
    one = Geometry("bf16", 128, 128, group, 1, "runs", 1)
    chosen = [warp_kernels.chosen(one, count).queries for count in (1, fit, fit + 1, 4096)]
    assert chosen == [1, fit, warp_prefill.QUERIES, warp_prefill.QUERIES]


def test_the_emulated_adapter_attends_by_it() -> None:
    """A block of 4 goes to it, so that the short blocks of a suite judge it."""
    fast, strict = CudaCPUFast(), CudaCPU()
    config, random = Config(k_dim=32, v_dim=32, kv_heads=2, step=8), np.random.default_rng(0)
    for n, kernel in ((3, "attend_warps_runs_f16_32_32_2_8"), (4, "prefill_warps_runs_f16_32_32_2_64")):
        assert not fast.space.runtime.knows(kernel)  # type: ignore[attr-defined]
        rows = Pair(*(random.standard_normal(config.shape(k, n)).astype(DTYPES[config.dtype]) for k in "kv"))
        queries = random.standard_normal((1, 4, n, config.k_dim), np.float32)
        found, same = (one.open("growing", config).attend(queries, *rows, Attention()) for one in (fast, strict))
        assert np.abs(found - same).max() < 2e-3 and found.tobytes() != same.tobytes()
        assert fast.space.runtime.knows(kernel)  # type: ignore[attr-defined]
