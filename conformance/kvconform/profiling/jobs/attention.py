"""Attention over what a cache holds: an append, and its queries."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from kvconform.profiling.bench import Bench
from kvconform.profiling.case import ALWAYS, Case, Job, Operation
from kvconform.profiling.jobs import cache
from kvconform.profiling.rows import noise
from kvspec import traffic
from kvspec.contract import Attention
from kvspec.geometry import Config

SPLITS = (1, 2, 4, 8, 16, 32)
"""Into how many splits the context may be parted: the fastest is measured."""

PATIENCE = 0.2
"""Seconds an attend may take for other splits to be tried."""


def attend(bench: Bench) -> Job:
    """n rows appended; their queries over the context and them."""
    case = bench.case
    caches, sources = cache.filled(bench, bench.turns(case.context)), bench.several(case.rows)
    asked, out = _queries(bench)

    def do(i: int, how: Attention) -> None:
        one = caches[i % len(caches)]
        one.attend(asked, *sources[i % len(sources)], how, out)
        one.rewind(case.context)

    return _split(bench, do)


def attend_ring(bench: Bench) -> Job:
    """One row into a full ring; its query over the window."""
    rings, sources = cache.wrapped(bench), bench.several(bench.case.rows)
    asked, out = _queries(bench)

    def do(i: int, how: Attention) -> None:
        rings[i % len(rings)].attend(asked, *sources[i % len(sources)], how, out)

    return _split(bench, do)


def _split(bench: Bench, do: Callable[[int, Attention], None]) -> Job:
    """The work with the splits that are fastest here; where one takes long, fewer are tried."""
    taken: dict[int, float] = {}
    for splits in SPLITS:
        taken[splits] = min(_seconds(bench, partial(do, i, Attention(splits=splits))) for i in range(2))
        if min(taken.values()) > PATIENCE:
            break
    fastest = min(taken, key=lambda splits: taken[splits])
    return Job(lambda i: do(i, Attention(splits=fastest)), ALWAYS, about={"splits": fastest})


def _seconds(bench: Bench, work: Callable[[], None]) -> float:
    """Until all is done, by the host's clock."""
    began = time.perf_counter()
    work()
    getattr(bench.adapter, "synchronise", lambda: None)()
    return time.perf_counter() - began


def _queries(bench: Bench) -> tuple[Any, Any]:
    """Queries `[B, heads, n, k_dim]` and a place for the output, both f32."""
    case, model = bench.case, bench.case.model
    shape = case.batch, model.heads, case.rows, model.dim
    asked, out = bench.placed(noise(shape, "f32", 3), noise(shape, "f32", 4))
    return asked, out


def _ring(case: Case) -> Config:
    return case.config(window=case.context, step=cache.STEP, batch=case.batch)


def _attended(case: Case) -> traffic.Traffic:
    return traffic.attended(cache.roomy(case), case.model.heads, case.rows, case.context + case.rows)


def _windowed(case: Case) -> traffic.Traffic:
    return traffic.attended(_ring(case), case.model.heads, case.rows, case.context)


def _held(case: Case) -> int:
    return 2 * case.context * case.config(batch=case.batch).row_bytes


OPERATIONS = (
    Operation(
        "attention",
        "rows appended, and their queries over all",
        ("growing", "attention"),
        cache.roomy,
        _attended,
        _held,
        attend,
    ),
    Operation(
        "ring attention", "the same in a full ring", ("ring", "attention"), _ring, _windowed, _held, attend_ring
    ),
)
