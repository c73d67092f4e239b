"""The attention kernel for compute capability 9.0 alone, emulated on the CPU, within the bound of ATTN-44."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from kvgpu.adapters import CudaCPU, CudaCPUFast
from kvgpu.runtimes import tensor_map
from kvgpu.runtimes.fast import hopper_prefill, warp_kernels, warp_prefill
from kvgpu.runtimes.fast.attention import Geometry
from kvspec.contract import Attention, Pair
from kvspec.geometry import DTYPES, Array, Config
from support.device.attention_case import Case
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

case_of = partial(of_many_queries, hopper_prefill.QUERIES)
"""Makes a case for this kernel."""


SHAPES = [("bf16", (64, 64), 3), ("f16", (128, 64), 1), ("f16", (64, 128), 7), ("bf16", (128, 128), 4)]


@pytest.mark.parametrize("worth", [1 << 20, 128], ids=["whole", "split"])
@pytest.mark.parametrize("shape", one_in(2, [(s,) for s in SHAPES]), ids=str)
def test_every_element_is_within_the_bound(
    shape: tuple[str, tuple[int, int], int], worth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In rings and pages; columns that fill a block, that do not, that see windows; queries 30 times as large."""
    monkeypatch.setattr(warp_prefill, "WORTH_SPLITTING", worth)
    check(case_of(*shape, 50, 300, turn=101, kv_heads=2))
    check(case_of(*shape, 40, 290, window=130, larger=30.0, entries=2, on_device=True), 16)
    check(case_of(*shape, 17, 400, causal=False, turn=208, base=3))
    check(case_of(*shape, 130 // shape[2] + 1, 150, first=9), 48)


@pytest.mark.parametrize("held", [1, 15, 16, 17, 127, 128, 129, 257])
def test_stages_that_are_not_full(held: int) -> None:
    check(case_of("f16", (64, 64), 2, min(held, 64), held, turn=held // 3))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("sixteen", [False, True], ids=["f32", "16 bits"])
def test_queries_are_not_rounded(dtype: str, sixteen: bool) -> None:
    """Keys of elements near 30 make scores near 5000, of which a 16-bit query would lose whole numbers."""
    check(with_high_scores(case_of(dtype, (64, 64), 2, 40, 50), sixteen))


@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("poisoned", ["keys", "values"])
def test_what_is_not_finite_is_seen_where_it_may_be_seen_and_nowhere_else(poisoned: str, poison: float) -> None:
    case = case_of("bf16", (64, 64), 2, 40, 100, window=30)
    assert not_finite(case, poisoned, poison, 75) == list(range(15, 40))


def test_a_query_that_sees_nothing_gives_zeros() -> None:
    case = case_of("f16", (64, 64), 2, 70, 3)
    assert not attended(runtime(), case)[:, :, :67].any()
    check(case)


PLANTED: dict[str, tuple[str, str]] = {
    "a swizzle that the descriptor does not name": ("swizzle_128 = 1;", "swizzle_128 = 2;"),
    "no swizzle": ("swizzle_128 = 1;", "swizzle_128 = 0;"),
    "chunks put where no swizzle puts them": ("(chunk % 8 ^ row % 8) * 16", "(chunk % 8) * 16"),
    "products that nobody waited for": ("    products_made<0>(a);\n  }\n  /* The", "  }\n  /* The"),
    "scores that nobody waited for": ("    end_products();\n    products_made<0>(s);\n#pragma", "#pragma"),
    "rows that nobody waited for": ("wait_at(at.filled(stage), stage / 2 & 1);", ""),
    "a stage filled while it is read": ("if (stage >= 2) wait_at(at.read(stage), (stage / 2 - 1) & 1);", ""),
    "a wrong phase of what is filled": ("at.filled(stage), stage / 2 & 1", "at.filled(stage), (stage / 2 + 1) & 1"),
    "a wrong phase of what is read": ("(stage / 2 - 1) & 1", "stage / 2 & 1"),
    "phases by stage": ("at.filled(stage), stage / 2 & 1", "at.filled(stage), stage & 1"),
    "a stride of keys": ("described(key, 16, EIGHT_ROWS)", "described(key, 16, EIGHT_ROWS / 2)"),
    "a stride of queries": ("described(q, 16, EIGHT_ROWS)", "described(q, 16, EIGHT_ROWS * 2)"),
    "a stride of values": ("SLAB, EIGHT_ROWS)", "EIGHT_ROWS, SLAB)"),
    "a slab of values": ("SLAB, EIGHT_ROWS)", "SLAB / 2, EIGHT_ROWS)"),
    "16 elements further by 16 bytes": ("k % 4 * 32;", "k % 4 * 16;"),
    "no fence before products": ("    fence_products(s);\n    multiply(s", "    multiply(s"),
    "rows that are not shown to products": ("    show_puts();\n    __syncwarp();", "    __syncwarp();"),
    "queries that are not shown to products": ("  show_puts();\n  left", "  left"),
    "barriers that are not shown to copies": ("    show_barriers();\n", ""),
    "too few bytes awaited": ("boxed * (K_DIM + VALUES_COME * V_DIM) / 64", "boxed * K_DIM / 64"),
    "too few arrivals": ("begin_barrier(at.read(i), WARP_GROUPS * 4)", "begin_barrier(at.read(i), 4)"),
    "a box across the turn of a ring": ("p + TILE <= rows.turn || p", "p < rows.turn || p"),
    "queries taken for 16-bit ones": ("if (part) left |=", "if (part > 2) left |="),
    "a stage taken for whole": ("p + STAGE <= all_stop", "p + TILE <= all_stop"),
    "scores of the other column": ("s[i] *= factor[i / 2 % 2];", "s[i] *= factor[0];"),
    "the rows of another group": ("at.queries(group), at.keys", "at.queries(0), at.keys"),
}  # fmt: skip
"""What was planted: a piece of the kernel, and what stands there instead."""


@pytest.mark.parametrize("bug", one_in(9, PLANTED))
def test_a_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("f16", (128, 128), 3, 70, 600, window=500, turn=130)
    case.keys = (case.keys.astype(np.float32) * (30 if "16-bit" in bug else 3)).astype(DTYPES[case.dtype])
    case.queries[:, 1] *= np.float32(1e-2)
    assert not wrong_of(case)
    plant(monkeypatch, *PLANTED[bug])
    assert wrong_of(case)


BOXES = {
    "a box with rows before the first seen": ("p < rows.low || p + TILE", "p + TILE"),
    "a box with rows behind the last seen": ("p < rows.low || p + TILE > rows.high", "p < rows.low"),
}
WHOLE = {
    "no boxes": ("return p + TILE <= rows.turn || p >= rows.turn;", "return false;"),
    "no boxes behind the turn of a ring": ("p + TILE <= rows.turn || p >= rows.turn", "p + TILE <= rows.turn"),
    "no boxes before the turn": ("p + TILE <= rows.turn || p >= rows.turn", "p >= rows.turn"),
    "no box before the last row": ("p + TILE > rows.high", "p + TILE >= rows.high"),
    "no box at the first row": ("p < rows.low ||", "p <= rows.low ||"),
}  # fmt: skip
"""Planted in what decides whether a tile comes in a box. Outputs are within the bound with all of them."""


def filled_with(number: float, case: Case, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The bits of the outputs, where all rows that no query sees are this number."""
    laid = Case.laid

    def written(case: Case, rows: Array) -> Array:
        found = laid(case, rows)
        return np.where(np.isnan(found), found.dtype.type(number), found)

    with monkeypatch.context() as patched:
        patched.setattr(Case, "laid", written)
        return attended(runtime(), case).tobytes()


@pytest.mark.parametrize("latent", [False, True], ids=["apart", "latent"])
@pytest.mark.parametrize("bug", [None, *BOXES])
def test_rows_that_nobody_sees_are_not_read(bug: str | None, latent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    dims = (192, 128) if latent else (64, 64)
    case = case_of("f16", dims, 2, 17, 300, window=135, spare=9, latent=latent)
    if bug:
        plant(monkeypatch, *BOXES[bug])
    same = filled_with(np.nan, case, monkeypatch) == filled_with(0.0, case, monkeypatch)
    assert same == (bug is None)


@pytest.mark.parametrize("latent", [False, True], ids=["apart", "latent"])
@pytest.mark.parametrize("bug", [None, *WHOLE])
def test_whole_tiles_come_in_boxes(bug: str | None, latent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No lane copies a row where all tiles are seen whole and lie side by side."""
    dims = (192, 128) if latent else (64, 64)
    case = case_of("f16", dims, 2, 48, 384, turn=128, causal=False, latent=latent)
    plant(
        monkeypatch,
        "    const bool seen = at",
        '    shim::refuse("a copy by lanes: %u %u", 0, 0);\n    const bool seen = at',
    )
    if bug:
        plant(monkeypatch, *WHOLE[bug])
    assert wrong_of(case) == (bug is not None)


def test_a_map_with_another_swizzle_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    case, right = case_of("bf16", (64, 64), 3, 40, 300), tensor_map.emulated
    assert not wrong_of(case)

    def wrong(matrix: tensor_map.Matrix, address: int) -> tensor_map.TensorMap:
        cells = right(matrix, address).cells
        return tensor_map.TensorMap((*cells[:7], 64, *cells[8:]))

    monkeypatch.setattr(tensor_map, "emulated", wrong)
    assert wrong_of(case)


def test_it_is_taken_only_where_it_is_asked_for() -> None:
    one = Geometry("bf16", 128, 128, 4, 1)
    assert warp_kernels.chosen(one, 4096).queries == warp_prefill.QUERIES
    assert warp_kernels.chosen(one, 4096, hopper=True).queries == hopper_prefill.QUERIES
    assert warp_kernels.chosen(one, 4, hopper=True) == warp_kernels.chosen(one, 4)
    for other in ({"k_dim": 96}, {"v_dim": 256}, {"lie": "rows"}):
        assert warp_kernels.chosen(one._replace(**other), 4096, hopper=True).queries == warp_prefill.QUERIES
    for dtype in hopper_prefill.PARTS:
        widest = one._replace(dtype=dtype, queries=hopper_prefill.QUERIES)
        assert hopper_prefill.shared(widest) <= 226 << 10, "a block has 227 KiB, and declares some"


def test_a_multiprocessor_has_room_for_one_block_of_it() -> None:
    """By registers: the older kernels count two."""
    one = Geometry("bf16", 64, 64, 4, 1, queries=hopper_prefill.QUERIES)
    made = warp_kernels.made(runtime(), one)
    assert made.workers == runtime().multiprocessors < runtime().workers
    assert f"#define COUNTERS {made.workers}\n" in made._program("it")


def test_the_emulated_adapter_attends_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hopper_prefill.OPTION, "1")
    fast, strict = CudaCPUFast(), CudaCPU()
    config, random = Config(k_dim=64, v_dim=64, kv_heads=2, step=8), np.random.default_rng(0)
    rows = Pair(*(random.standard_normal(config.shape(k, 40)).astype(DTYPES[config.dtype]) for k in "kv"))
    queries = random.standard_normal((1, 4, 40, 64), np.float32)
    found, same = (one.open("growing", config).attend(queries, *rows, Attention()) for one in (fast, strict))
    assert np.abs(found - same).max() < 2e-3 and found.tobytes() != same.tobytes()
    assert fast.space.runtime.knows("hopper_prefill_runs_f16_64_64_2_128")  # type: ignore[attr-defined]
