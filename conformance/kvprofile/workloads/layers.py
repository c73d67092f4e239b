"""A cache of layers of unlike views, as the layers of a model are."""

from __future__ import annotations

from typing import Any

from kvprofile.case import Case
from kvprofile.operation import Job, Work
from kvprofile.subject import Subject
from kvspec import traffic
from kvspec.geometry import Config

CHUNK = 512
"""Rows of a chunk of a prompt."""


def _config(case: Case) -> Config:
    """Make a cache whose full layers have room for the context, and for as much again."""
    return case.config(of=case.model.views, layers=case.model.layers, step=2 * case.context)


def _shapes(subject: Subject, n: int) -> list[tuple[int, ...]]:
    """Give the shapes of n rows of every layer, `[layers, H, n, dim]`."""
    return [(subject.case.model.layers, *shape[1:]) for shape in subject.shapes(n)]


def append(subject: Subject) -> Job:
    """Append n rows to every layer behind the context, which came in chunks, all alike."""
    case = subject.case
    chunks = _chunks(case.context)
    prompt = {n: subject.arrays(_shapes(subject, n)) for n in {*chunks}}
    caches = [subject.open("layers") for _ in range(subject.turns(_kept(case)))]
    sources = subject.several(_shapes(subject, case.rows))

    def fill(cache: Any) -> None:
        for n in chunks:
            cache.append(*prompt[n])

    def reset() -> None:
        for cache in caches:
            cache.free()
            fill(cache)

    for cache in caches:
        fill(cache)
    most = len(caches) * (case.context // case.rows)
    return Job(lambda i: caches[i % len(caches)].append(*sources[i % len(sources)]), most, reset)


def _chunks(context: int) -> list[int]:
    """Cut a prompt into chunks, the last of them short."""
    return [min(CHUNK, context - at) for at in range(0, context, CHUNK)]


def _kept(case: Case) -> int:
    """Count the rows that all layers keep."""
    whole = case.model.views.split(",").count("full")
    beside = case.model.layers - whole
    return whole * case.context + beside * min(case.context, case.model.window or 0)


WORK = {
    "layers append": Work(
        _config,
        lambda case: traffic.layered(_config(case), case.rows),
        lambda case: 2 * _kept(case) * _config(case).row_bytes,
        append,
    ),
}
