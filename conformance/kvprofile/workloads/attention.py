"""Attention over a cache or store: an append with its queries, queries of a batch, and captured attends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache as remembered
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from kvprofile.case import Case
from kvprofile.operation import ALWAYS, Job, Work
from kvprofile.random_rows import noise
from kvprofile.subject import Subject
from kvprofile.workloads import cache
from kvspec import traffic
from kvspec.contract import Attention, Rope
from kvspec.geometry import Config

SPLITS = (1, 2, 4, 8, 16, 32)
"""Numbers of splits to try: the fastest is measured."""

PATIENCE = 0.2
"""Seconds that an attend may take before no other splits are tried."""

AROUND = 32
"""Captured attends keep their row: they begin this many rows below the context, and start again this many above
it."""


def attend(subject: Subject) -> Job:
    """Append n rows; attend with their queries over the context and these, with RoPE if the case says so."""
    case = subject.case
    caches, sources = cache.filled(subject, subject.turns(case.context)), subject.several(subject.shapes(case.rows))
    rope, (asked, out) = Rope(case.pairing) if case.pairing else None, queries(subject)

    def do(i: int, how: Attention) -> None:
        one = caches[i % len(caches)]
        one.attend(asked, *sources[i % len(sources)], how._replace(rope=rope), out)
        one.rewind(case.context)

    return fastest(subject, do, about={"pairing": rope.pairing} if rope else {})


def attend_ring(subject: Subject) -> Job:
    """Append one row to a full ring; attend with its query over the window."""
    rings, sources = cache.wrapped(subject), subject.several(subject.shapes(subject.case.rows))
    asked, out = queries(subject)

    def do(i: int, how: Attention) -> None:
        rings[i % len(rings)].attend(asked, *sources[i % len(sources)], how, out)

    return fastest(subject, do)


def attend_batch(subject: Subject) -> Job:
    """Attend with one query of each sequence of a batch over its rows in one layer."""
    return _over_batch(subject, [subject.case.context] * subject.case.batch)


def attend_ragged(subject: Subject) -> Job:
    """The same over sequences of unequal lengths."""
    return _over_batch(subject, subject.case.lengths)


def _over_batch(subject: Subject, lengths: Sequence[int]) -> Job:
    stores = _layers(subject, subject.case.context, sum(lengths))
    for one in stores:
        one.batch(len(lengths))
        for sequence, rows in enumerate(lengths):
            one.scatter(sequence, rows)
    asked, out = queries(subject)
    return fastest(subject, lambda i, how: stores[i % len(stores)].attend_batch(asked, 0, how.splits, out))


def attend_captured(subject: Subject) -> Job:
    """Replay a captured attend: append one row to a store's layer, its query over all rows."""
    begin = subject.case.context - AROUND
    stores, sources, (asked, _) = (
        _layers(subject, begin, subject.case.context),
        subject.several(subject.shapes(1)),
        queries(subject),
    )

    @remembered
    def captured(which: int, how: Attention) -> Any:
        return stores[which].capture_attend(0, subject.case.model.heads, how.splits)

    def do(i: int, how: Attention) -> None:
        captured(i % len(stores), how).replay(asked, *sources[i % len(sources)])

    def reset() -> None:
        for one in stores:
            one.rollback(begin)

    job = fastest(subject, do, 2 * AROUND * len(stores), reset)
    for which in range(len(stores)):
        captured(which, Attention(splits=job.about["splits"]))
    return job


def _layers(subject: Subject, rows: int, read: int) -> list[Any]:
    """Make stores of one layer that hold this many rows, to read `read` rows of one at a time."""
    new = subject.rows(rows)
    stores = [subject.open("store") for _ in range(subject.turns(read))]
    for one in stores:
        one.append(*new)
    return stores


def fastest(
    subject: Subject,
    do: Callable[[int, Attention], object],
    most: int = ALWAYS,
    reset: Callable[[], None] = lambda: None,
    about: Mapping[str, Any] = MappingProxyType({}),
) -> Job:
    """Find the number of splits that is fastest here; if one takes long, try fewer."""
    taken: dict[int, float] = {}
    for splits in SPLITS:
        taken[splits] = min(_seconds(subject, partial(do, i, Attention(splits=splits))) for i in range(2))
        reset()
        if min(taken.values()) > PATIENCE:
            break
    how = Attention(splits=min(taken, key=lambda splits: taken[splits]))
    return Job(lambda i: do(i, how), most, reset, {**about, "splits": how.splits})


def _seconds(subject: Subject, work: Callable[[], object]) -> float:
    """Time the work until all is done, by the host's clock."""
    began = time.perf_counter()
    work()
    getattr(subject.adapter, "synchronise", lambda: None)()
    return time.perf_counter() - began


def queries(subject: Subject, *layers: int) -> tuple[Any, Any]:
    """Make queries `[B, heads, n, k_dim]`, or `[layers, B, ...]`, and an array for the output, both f32. The rows'
    dtype holds the queries exactly: a model computes them in it, and peers take them so."""
    case, model = subject.case, subject.case.model
    shapes = ((*layers, case.batch, model.heads, case.rows, dim) for dim in (model.dim, model.v_dim))
    drawn = (noise(shape, case.dtype, turn).astype(np.float32) for turn, shape in enumerate(shapes, 3))
    asked, out = subject.placed(*drawn)
    return asked, out


def _ring(case: Case) -> Config:
    return case.config(window=case.context, step=cache.STEP, batch=case.batch)


def _layer(case: Case) -> Config:
    return case.config(layers=1, max_len=case.context + (AROUND if case.batch == 1 else 0))


def _attended(case: Case) -> traffic.Traffic:
    return traffic.attended(cache.roomy(case), case.model.heads, case.rows, case.context + case.rows)


def _windowed(case: Case) -> traffic.Traffic:
    return traffic.attended(_ring(case), case.model.heads, case.rows, case.context)


def _batched(case: Case) -> traffic.Traffic:
    return traffic.asked(case.config(batch=case.batch), case.model.heads, 1, case.context)


def _ragged(case: Case) -> traffic.Traffic:
    return traffic.total([traffic.asked(case.config(), case.model.heads, 1, rows) for rows in case.lengths])


def _replayed(case: Case) -> traffic.Traffic:
    return traffic.attended(_layer(case), case.model.heads, 1, case.context)


def _held(case: Case) -> int:
    return 2 * case.context * case.config(batch=case.batch).row_bytes


WORK = {
    "attention": Work(cache.roomy, _attended, _held, attend),
    "rope attention": Work(cache.roomy, _attended, _held, attend),
    "ring attention": Work(_ring, _windowed, _held, attend_ring),
    "batch attention": Work(_layer, _batched, _held, attend_batch),
    "ragged attention": Work(_layer, _ragged, _held, attend_ragged),
    "captured attention": Work(_layer, _replayed, _held, attend_captured),
}
