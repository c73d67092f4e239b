"""Attention on tensor cores over the rows of a case, and how far its outputs are from exact ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from kvgpu.caches.attention import Pages, Runs
from kvgpu.memory.device_arrays import fetched, placed
from kvgpu.memory.layout import Place
from kvgpu.runtimes.fast import hopper_latent, hopper_prefill, warp_attention, warp_kernels, warp_prefill
from kvgpu.runtimes.fast.attention import Call, Geometry
from kvgpu.runtimes.fast.cuda_fast import FastCudaCPURuntime
from kvgpu.runtimes.fast.warp_attention import WarpDevice
from kvref.list_model.attention_bound import weighed
from kvspec.geometry import DTYPES, Array
from support.device.attention_case import Case, pages, positions

if TYPE_CHECKING:  # the sanitizers use these cases too, and need no pytest
    import pytest


@cache
def runtime() -> FastCudaCPURuntime:
    """The emulated device that the tests of these kernels share."""
    return FastCudaCPURuntime()


def geometry(case: Case, lie: str) -> Geometry:
    """What a kernel is compiled for: that for many queries, if 64 or 128 are taken together."""
    if case.latent:
        heads = case.kv_heads * case.group, case.kv_heads
        return Geometry(case.dtype, case.k_dim, case.v_dim, *heads, lie, hopper_latent.COLUMNS, "latent")
    one = Geometry(case.dtype, case.k_dim, case.v_dim, case.kv_heads * case.group, case.kv_heads, lie, 1)
    if case.together in (warp_prefill.QUERIES, hopper_prefill.QUERIES):
        return one._replace(queries=case.together)
    return one._replace(queries=warp_attention.together(one) if case.together > 1 else 1)


def attended(runtime: WarpDevice, case: Case, slots: int | None = None) -> Array:
    """What the kernel makes of rows in a ring; or in pages of a few slots, in any order of pages, NaN in all other
    slots."""
    if slots is None:
        return _attended(runtime, case, "runs", _ring(runtime, case))
    return _attended(runtime, case, "rows" if slots % 16 else "pages", pages(runtime, case, slots))


def _ring(runtime: WarpDevice, case: Case) -> Runs:
    (keys,), (values,) = (placed(runtime, case.laid(rows)) for rows in (case.keys, case.values))
    values = keys if case.latent else values
    span = Place(keys.block, values.block, keys.at, values.at, case.slots).span(case.base, case.turn, case.wrap)
    return Runs.of(span, case.kv_heads * case.slots)


def _attended(runtime: WarpDevice, case: Case, lie: str, rows: Runs | Pages) -> Array:
    attention = warp_kernels.made(runtime, geometry(case, lie))
    nowhere = np.full((*case.queries.shape[:3], case.v_dim), np.nan, np.float32)
    for _ in range(2):  # the second finds what counters the first has left
        (queries,), (out,) = placed(runtime, case.queries), placed(runtime, nowhere)
        attention.attend(Call(queries, rows, positions(runtime, case), out, case.causal, case.window, case.held))
    return fetched(out)


def exact(case: Case) -> Iterator[tuple[tuple[int, int, int], Array, Array]]:
    """For each query its place, its output in f64, and the bound."""
    for at in np.ndindex(*case.queries.shape[:3]):
        entry, head, query = at
        seen = case.seen()[query]
        rows = (r[entry, head // case.group, seen].astype(np.float64) for r in (case.keys, case.values))
        nothing = np.zeros(case.v_dim), np.zeros(case.v_dim)
        asked = case.queries[at].astype(np.float64)
        with np.errstate(all="ignore"):
            found = weighed(asked, *rows, np.zeros(seen.sum()), case.dtype)[:2] if seen.any() else nothing
        yield (entry, head, query), *found


def worst(case: Case, found: Array) -> float:
    """How far the worst element is off, as a share of its bound, if it has one; infinite where it is NaN."""
    shares = []
    for at, output, bound in exact(case):
        bounded = np.isfinite(output) & np.isfinite(bound)
        off = np.where(np.isnan(found[at]), np.inf, np.abs(found[at] - output))[bounded]
        shares += [np.where(off == 0, 0.0, off / np.maximum(bound[bounded], 1e-300))]
    return float(np.concatenate(shares).max(initial=0.0))


def check(case: Case, slots: int | None = None) -> None:
    """Every element is within its bound."""
    assert worst(case, attended(runtime(), case, slots)) <= 1.0, case


def wrong_of(case: Case, slots: int | None = None) -> bool:
    """Whether an element is beyond its bound, or the emulation refuses what the kernel does."""
    try:
        return worst(case, attended(runtime(), case, slots)) > 1.0
    except RuntimeError:
        return True


def plant(monkeypatch: pytest.MonkeyPatch, right: str, wrong: str) -> None:
    """From now on every kernel for tensor cores has something else in the place of a piece of its text."""
    monkeypatch.setattr(warp_attention, "program", with_bug(warp_attention.program, right, wrong))
    monkeypatch.setattr(runtime(), "_kernels", {})


def with_bug(write: Callable[..., str], right: str, wrong: str) -> Callable[..., str]:
    """What writes the same program text, with something else in the place of a piece of it."""

    def written(*args: Any) -> str:
        text = write(*args)
        assert right in text
        return text.replace(right, wrong)

    return written


def of_many_queries(
    together: int, dtype: str, dims: tuple[int, int], group: int, count: int, held: int, **more: Any
) -> Case:
    """A case for a kernel that takes `together` queries. Its ring is as long as what is held unless `more` says
    otherwise."""
    sizes = {"group": group, "count": count, "together": together, "held": held, "wrap": held}
    return Case(dtype, *dims, **{**sizes, "seed": count + held, **more})


def with_high_scores(case: Case, sixteen: bool) -> Case:
    """The case with keys of elements near 30, which make scores near 5000. Of these a query in 16 bits would lose
    whole numbers; with `sixteen` the queries have no more bits themselves."""
    case.keys = (case.keys.astype(np.float32) * 30).astype(DTYPES[case.dtype])
    if sixteen:
        case.queries = case.queries.astype(DTYPES[case.dtype]).astype(np.float32)
    return case


def not_finite(case: Case, poisoned: str, poison: float, at: int) -> list[int]:
    """The queries whose outputs are not finite where the keys or values at a position are not."""
    getattr(case, poisoned)[:, :, at] = poison
    finite = np.isfinite(attended(runtime(), case)).all((0, 1, 3))
    return np.flatnonzero(~finite).tolist()
