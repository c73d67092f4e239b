"""The attention kernel for wide rows, emulated on the CPU, element by element within the bound of ATTN-44."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kvgpu.adapters import CudaCPU, CudaCPUFast
from kvgpu.runtimes.fast import warp_attention, warp_kernels, warp_wide
from kvgpu.runtimes.fast.attention import Geometry
from kvspec.contract import Attention, Pair
from kvspec.geometry import DTYPES, Config
from support.device.attention_case import Case, cases
from support.device.warp_cases import attended, check, plant, runtime, wrong_of
from support.slow import one_in


@pytest.fixture(params=[1 << 20, 32], ids=["whole", "split"])
def worth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions in one split, or in as many splits as there may be."""
    monkeypatch.setattr(warp_attention, "WORTH_SPLITTING", request.param)


GEOMETRIES = [
    ("bf16", (576, 512), 16), ("f16", (576, 512), 40), ("bf16", (320, 64), 3), ("f16", (64, 320), 8),
    ("f16", (512, 512), 1), ("bf16", (448, 384), 20), ("f32", (256, 256), 16), ("f32", (64, 192), 3),
    ("f32", (320, 320), 20),
]  # fmt: skip


def few(dtype: str, dims: tuple[int, int], group: int) -> Iterator[Case]:
    """Cases of a geometry, of all kinds, with one query or two."""
    for case, count in zip(cases(dtype, *dims, group, 4), (1, 2, 1, 1), strict=True):
        yield replace(case, count=count, together=1)


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("geometry", one_in(4, [(g,) for g in GEOMETRIES]), ids=str)
def test_every_element_is_within_the_bound(geometry: tuple[str, tuple[int, int], int]) -> None:
    for case in few(*geometry):
        check(case)


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("slots", one_in(3, [16, 5, 48]))
def test_rows_in_pages(slots: int) -> None:
    for geometry in (GEOMETRIES[2], GEOMETRIES[7]):
        for case in few(*geometry):
            check(case, slots)


@pytest.mark.parametrize("held", [1, 15, 16, 17, 31, 32, 33])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_tiles_that_are_not_full(dtype: str, held: int) -> None:
    check(Case(dtype, 320, 64, group=3, held=held, wrap=held, turn=held // 3))
    check(Case(dtype, 320, 64, group=3, held=held, wrap=held, window=7))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_queries_are_not_rounded(dtype: str) -> None:
    """Keys of elements near 30 make scores near 5000, of which a 16-bit query would lose whole numbers."""
    case = Case(dtype, 320, 64, group=3, held=50, wrap=50)
    case.keys = (case.keys.astype(np.float32) * 30).astype(DTYPES[dtype])
    check(case)


@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("poisoned", ["keys", "values"])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_what_is_not_finite_is_seen_where_it_may_be_seen_and_nowhere_else(
    dtype: str, poisoned: str, poison: float
) -> None:
    case = Case(dtype, 320, 64, group=3, held=100, wrap=100, count=40, window=30)
    getattr(case, poisoned)[:, :, 75] = poison
    finite = np.isfinite(attended(runtime(), case)).all((0, 1, 3))
    assert np.flatnonzero(~finite).tolist() == list(range(15, 40))


PLANTED: dict[str, tuple[str, str]] = {
    "a copy that nobody waited for": ("    arrived<0>();\n", ""),
    "warps that do not meet before a tile": ("    __syncthreads(); /* it is", "    /* it is"),
    "warps that do not meet before they add up": ("  __syncthreads();\n#pragma", "#pragma"),
    "the scores of one warp too few": ("w = 1; w < WARPS", "w = 1; w < WARPS - 1"),
    "a tile that overwrites the one in use": ("two + (i + 1 & 1)", "two + (i & 1)"),
    "values where the keys are": ("stage + UNIT_BYTES, lane, QUERIES", "stage, lane, QUERIES"),
    "every warp the first share": ("of.share = sums.share = warp", "of.share = sums.share = 0"),
    "shares side by side": ("(share + (i)*SHARES)", "(share * STEPS(K_DIM) + (i))"),
    "chunks that change places otherwise": ("(at) ^ share * 32", "(at) + share * 32"),
    "outputs of another share": ("(warp + j / 2 * SHARES)", "(warp + j / 2)"),
    "the maximum of another column": ("= sums.m[e][c], part", "= sums.m[e][c ^ 1], part"),
    "a window's end taken for whole": ("whole = p >= all_from", "whole = p + TILE >= all_from"),
}  # fmt: skip
"""What was planted: a piece of the kernel, and what stands there instead."""


IN_16_BITS = "chunks that change places otherwise"
"""A bug in what only rows of 16 bits do."""


@pytest.mark.parametrize(
    ("dtype", "bug"),
    one_in(7, [("f16", bug) for bug in PLANTED] + [("f32", b) for b in PLANTED if b != IN_16_BITS]),
)
def test_a_planted_bug_is_seen(dtype: str, bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warp_attention, "WORTH_SPLITTING", 64)
    case = Case(dtype, 320, 128, group=12, held=300, wrap=300, window=201, turn=100)
    case.values = np.abs(case.values)  # so that a row too many is seen, though it weighs little
    assert not wrong_of(case)
    plant(monkeypatch, *PLANTED[bug])
    assert wrong_of(case)


def test_it_takes_what_is_too_wide_for_the_others() -> None:
    latent = Geometry("bf16", 576, 512, 128, 1)
    assert warp_kernels.taken(latent) and warp_kernels.module(latent) is warp_wide
    assert [warp_kernels.chosen(latent, count).queries for count in (1, 4, 4096)] == [1, 1, 1]
    assert warp_attention.passes(latent) == 8 and warp_attention.columns(latent) == 16
    assert warp_kernels.module(latent._replace(k_dim=256, v_dim=256)) is warp_attention
    for dims in ((320, 32), (600, 512), (640, 64)):
        assert not warp_kernels.taken(latent._replace(k_dim=dims[0], v_dim=dims[1]))
    for width, module in ((128, warp_attention), (192, warp_wide), (320, warp_wide)):
        of_f32 = Geometry("f32", width, width, 16, 1)
        assert warp_kernels.taken(of_f32) and warp_kernels.module(of_f32) is module
        assert [warp_kernels.chosen(of_f32, count).queries for count in (1, 4096)] == [1, 1]
    assert not warp_kernels.taken(Geometry("f32", 384, 384, 16, 1))
    assert warp_attention.columns(Geometry("f32", 256, 256, 16, 1)) == 16
    for widest in (latent, Geometry("f32", 320, 320, 16, 1)):
        assert warp_wide.shared(widest) < 96 << 10, "sm_120 has 99 KiB"


def test_the_adapter_attends_by_it() -> None:
    """Latent rows of one kv head, as DeepSeek has them: appended one by one, and in a block."""
    config, random = Config(k_dim=320, v_dim=256, kv_heads=1, dtype="bf16"), np.random.default_rng(0)
    found = []
    for adapter in (CudaCPUFast(), CudaCPU()):
        cache: Any = adapter.open("growing", config)
        for n in (5, 1, 1):
            queries = random.standard_normal((1, 6, n, 320), np.float32)
            rows = Pair(
                *(random.standard_normal((1, 1, n, d), np.float32).astype(DTYPES["bf16"]) for d in (320, 256))
            )
            out = cache.attend(queries, *rows, Attention())
        found.append(out)
        random = np.random.default_rng(0)
    assert found[0].tobytes() != found[1].tobytes() and np.abs(found[0] - found[1]).max() < 2e-2
