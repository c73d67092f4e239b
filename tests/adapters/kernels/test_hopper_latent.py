"""The kernel for latent rows of compute capability 9.0, emulated on the CPU, within the bound of ATTN-44."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kvgpu.adapters import CudaCPUFast
from kvgpu.runtimes.fast import hopper_latent, hopper_prefill, warp_kernels, warp_prefill
from kvgpu.runtimes.fast.attention import Geometry
from kvref.list_model.attention_bound import weighed
from kvspec.contract import Attention
from kvspec.geometry import DTYPES, Array, Config
from support.device.attention_case import Case
from support.device.warp_cases import attended, check, plant, runtime, wrong_of
from support.slow import one_in


def case_of(dtype: str, dims: tuple[int, int], group: int, count: int, held: int, **more: Any) -> Case:
    """A case for this kernel, in a ring that is as long as what is held unless `more` says otherwise."""
    sizes = {"group": group, "count": count, "held": held, "wrap": held, "latent": True}
    return Case(dtype, *dims, **{**sizes, "seed": count + held, **more})


SHAPES = [
    ("bf16", (576, 512), 16), ("f16", (192, 128), 3), ("f16", (320, 256), 20),
    ("bf16", (128, 128), 128), ("bf16", (192, 128), 1), ("f16", (576, 512), 64),
]  # fmt: skip


@pytest.mark.parametrize("worth", [1 << 20, 64], ids=["whole", "split"])
@pytest.mark.parametrize("shape", one_in(3, [(s,) for s in SHAPES]), ids=str)
def test_every_element_is_within_the_bound(
    shape: tuple[str, tuple[int, int], int], worth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One query and several, in rings and pages of any size; windows, masks, lengths on the device."""
    monkeypatch.setattr(warp_prefill, "WORTH_SPLITTING", worth)
    check(case_of(*shape, 1, 300, turn=101))
    check(case_of(*shape, 2, 190, window=130, larger=30.0, entries=2, on_device=True), 16)
    check(case_of(*shape, 9, 270, causal=False, turn=208, base=3, kv_heads=2))
    check(case_of(*shape, 3, 150, first=9, window=31), 5)


@pytest.mark.parametrize("held", [1, 15, 16, 63, 64, 65, 129])
def test_stages_that_are_not_full(held: int) -> None:
    check(case_of("f16", (192, 128), 2, min(held, 40), held, turn=held // 3))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("sixteen", [False, True], ids=["f32", "16 bits"])
def test_queries_are_not_rounded(dtype: str, sixteen: bool) -> None:
    """Keys of elements near 30 make scores near 5000, of which a 16-bit query would lose whole numbers."""
    case = case_of(dtype, (192, 128), 2, 10, 150)
    case.keys = (case.keys.astype(np.float32) * 30).astype(DTYPES[dtype])
    case.values = case.keys[..., : case.v_dim]
    if sixteen:
        case.queries = case.queries.astype(DTYPES[dtype]).astype(np.float32)
    check(case)


@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("element", [5, 150])
def test_what_is_not_finite_is_seen_where_it_may_be_seen_and_nowhere_else(element: int, poison: float) -> None:
    """In what is a value too, and in the rest of a key."""
    case = case_of("bf16", (192, 128), 2, 40, 100, window=30)
    case.keys[:, :, 75, element] = poison
    finite = np.isfinite(attended(runtime(), case)).all((0, 1, 3))
    assert np.flatnonzero(~finite).tolist() == list(range(15, 40))


def test_a_query_that_sees_nothing_gives_zeros() -> None:
    case = case_of("f16", (192, 128), 2, 70, 3)
    assert not attended(runtime(), case)[:, :, :67].any()
    check(case)


LATE = "    if (group == 1)\n      for (int i = 0; i < 99; ++i) __syncwarp();\n"
"""Keeps a group behind the other, as may happen: the emulation lets warps take turns."""

BEFORE_WEIGHTS = "    exchange(others, told, at.told(), stage);\n"

SHOWN = "    show_puts();\n    __syncwarp();\n    if (lane == 0) arrive(at.weighed"

PLANTED: dict[str, tuple[str, str]] = {
    "rows that nobody waited for": ("    wait_at(at.filled(stage), stage / 2 & 1);\n", ""),
    "a stage filled while it is read": ("if (stage >= 2) wait_at(at.read(stage), (stage / 2 - 1) & 1);", ""),
    "a stage given back before it is read": (
        "      products_made<0>(of.a);\n      __syncwarp();",
        "      __syncwarp();",
    ),
    "scores that nobody waited for": ("      products_made<1>(s);\n", ""),
    "outputs of the last stage that nobody waited for": (
        "      products_made<0>(of.a);\n    }\n",
        "    }\n",
    ),
    "maxima that are not told": ("most[c] = fmaxf(own[c], others[c]);", "most[c] = own[c];"),
    "maxima read before they are told": ("    wait_at(barrier, time & 1);\n", ""),
    "a wrong phase of what is told": ("time & 1", "time + 1 & 1"),
    "too few who tell": ("begin_barrier(at.told(), GROUPS_OF * 4)", "begin_barrier(at.told(), 4)"),
    "weights that the other group has not written": ("    wait_at(at.weighed(), stage & 1);\n", ""),
    "weights that are not shown to products": (SHOWN, SHOWN.removeprefix("    show_puts();\n")),
    "weights where the other group's are": ("group * (OWN / 8) + e)", "(OWN / 8) + e)"),
    "the scores of the other group's positions": ("group * OWN * LINE", "(group ^ 1) * OWN * LINE"),
    "the other half of the values": ("at.values(stage) + group *", "at.values(stage) + (group ^ 1) *"),
    "the other half of the outputs": ("d = of.group * HALF", "d = (of.group ^ 1) * HALF"),
    "sums of one group": ("of.l[c] + sums[c]", "of.l[c]"),
    "sums that are not scaled down": ("a[i] *= less[i / 2 % 2];\n    wait", ";\n    wait"),
    "weights in steps of another size": ("weights + tile * 32", "weights + tile * 16"),
    "values in steps of another size": ("values + tile * BOX_BYTES", "values + tile * BOX_BYTES / 2"),
    "a stride of keys": ("within, 16, EIGHT_ROWS)", "within, 16, EIGHT_ROWS / 2)"),
    "queries taken for 16-bit ones": ("if (part) left |=", "if (part > 2) left |="),
    "rests of the queries of another column": ("= queries[i % 2];", "= queries[0];"),
    "rests of other elements of the queries": ("k * 16 + i / 2 * 8", "k * 16 + i % 2 * 8"),
    "a rest of the queries less": ("part < PARTS - 1; ++part) PRODUCT", "part < PARTS - 2; ++part) PRODUCT"),
    "no fence before products": ("    fence_products(s);\n#pragma", "#pragma"),
    "a stage taken for whole": ("next + STAGE <= all_stop", "next <= all_stop"),
    "the first stage taken for whole": ("whole = p >= all_from &&", "whole = true ||"),
    "positions of the other group hidden": ("next + of.group * OWN", "next + (of.group ^ 1) * OWN"),
    "too few bytes awaited": ("boxed * (K_DIM", "boxed * (V_DIM"),
    "rows of another head": ("(kv_head)*slots + start", "(kv_head + 1)*slots + start"),
}  # fmt: skip
"""What was planted: a piece of the kernel, and what stands there instead."""


@pytest.mark.parametrize("bug", one_in(3, PLANTED))
def test_a_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("f16", (192, 128), 3, 30, 600, window=480, turn=130)
    case.keys = (case.keys.astype(np.float32) * (30 if "queries" in bug else 3)).astype(DTYPES[case.dtype])
    case.values = case.keys[..., : case.v_dim]
    case.queries[:, 1] *= np.float32(1e-2)
    plant(monkeypatch, BEFORE_WEIGHTS, BEFORE_WEIGHTS + LATE)
    assert not wrong_of(case)
    plant(monkeypatch, *PLANTED[bug])
    assert wrong_of(case)


def test_which_rows_it_takes() -> None:
    latent = Geometry("bf16", 576, 512, 128, 1, form="latent")
    for count in (1, 4096):
        chosen = warp_kernels.chosen(latent, count)
        assert chosen.queries == hopper_latent.COLUMNS and warp_kernels.module(chosen) is hopper_latent
    assert warp_kernels.taken(latent) and not warp_kernels.taken(latent._replace(form="q8_0"))
    for other in ({"k_dim": 640}, {"v_dim": 384}, {"k_dim": 256}, {"dtype": "f32"}):
        assert not warp_kernels.taken(latent._replace(**other))
    assert hopper_latent.shared(latent) <= 226 << 10, "a block has 227 KiB, and declares some"


@pytest.fixture(scope="module")
def adapter() -> Any:
    """An adapter that was made where the kernels for compute capability 9.0 were asked for."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(hopper_prefill.OPTION, "1")
        return CudaCPUFast()


KINDS: dict[str, dict[str, Any]] = {
    "growing": {}, "ring": {"window": 60}, "page": {"page_size": 16, "pages": 20},
    "store": {"layers": 2, "max_len": 200},
}  # fmt: skip


@pytest.mark.parametrize("slots", [16, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_the_adapter_reads_latent_rows_where_they_lie(
    adapter: Any, kind: str, slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = KINDS[kind] | ({"page_size": slots, "pages": 40} if kind == "page" else {})
    config = Config(1, 1, 192, 128, "bf16", form="latent", **more)
    cache: Any = adapter.open(kind, config)
    if kind == "page":
        cache.admit()
    names = launched(adapter, monkeypatch)
    random, held = np.random.default_rng(0), np.empty((0, 192))
    for n in (100, 1, 3):
        row = random.standard_normal((1, 1, n, 192)).astype(DTYPES["bf16"])
        queries = random.standard_normal((1, 6, n, 192)).astype(np.float32)
        layers = {"of": 1} if kind == "store" else {}
        if layers:
            cache.append(row, row[..., :128], 0)
        out = cache.attend(queries, row, row[..., :128], Attention(), **layers)
        held = np.concatenate((held, row[0, 0].astype(np.float64)))
        demand_bound(queries, out, held, 60 if kind == "ring" else 1 << 30)
    assert "decode" not in names and any(name.startswith("hopper_latent") for name in names)


@pytest.mark.parametrize("form", ["latent", "int8/32,latent"])
def test_what_the_kernel_does_not_read_is_decoded(adapter: Any, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learned sinks go to the strict kernel; so do codes, of rows that are as wide."""
    cache: Any = adapter.open("growing", Config(1, 1, 192, 128, "bf16", form=form))
    row = np.ones((1, 1, 1, 192), DTYPES["bf16"])
    names = launched(adapter, monkeypatch)
    how = Attention(sinks=(0.5, 1.0)) if form == "latent" else Attention()
    assert np.isfinite(cache.attend(np.ones((1, 2, 1, 192), np.float32), row, row[..., :128], how)).all()
    assert "decode" in names


def launched(adapter: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    start = adapter.space.runtime._start

    def noted(launch: Any) -> None:
        names.append(launch.kernel)
        start(launch)

    monkeypatch.setattr(adapter.space.runtime, "_start", noted)
    return names


def demand_bound(queries: Array, out: Array, held: Array, window: int) -> None:
    """Every element is within its bound: the queries stand at the ends of the rows that are held."""
    n, end = queries.shape[2], len(held)
    for h, i in np.ndindex(queries.shape[1], n):
        last = end - n + i + 1
        rows = held[max(0, last - window) : last]
        asked = queries[0, h, i].astype(np.float64)
        with np.errstate(all="ignore"):
            right, bound = weighed(asked, rows, rows[:, :128], np.zeros(len(rows)), "bf16")[:2]
        assert np.isfinite(bound).all() and (np.abs(out[0, h, i] - right) <= bound).all(), (h, i)


def test_latent_rows_are_read_in_place_only_where_it_is_asked_for() -> None:
    config = Config(1, 1, 576, 512, "bf16", form="latent")
    assert hopper_latent.readable(config) and not CudaCPUFast().space.runtime.reads_form(config)  # type: ignore[attr-defined]
    assert not hopper_latent.readable(config.changed(form="int8/32,latent"))
    assert not hopper_latent.readable(config.changed(dtype="f32"))
