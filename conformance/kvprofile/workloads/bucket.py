"""Bucketed caches: graph steps at a bound, blocks, a change of bound, syncs to the host, cross-attention."""

from __future__ import annotations

from typing import Any

from kvprofile.case import Case
from kvprofile.operation import Job, Work
from kvprofile.random_rows import noise
from kvprofile.subject import Subject
from kvprofile.workloads.attention import fastest, queries
from kvspec import traffic
from kvspec.contract import Attention
from kvspec.geometry import Config

STEPS = 33
"""Steps up to a bound, before as many rows are cut."""


def opened(subject: Subject) -> list[Any]:
    """Open as many bucketed caches as there are to rotate through."""
    case = subject.case
    return [subject.open("bucket") for _ in range(subject.turns(case.context * case.model.layers))]


def filled(subject: Subject, past: int) -> list[Any]:
    """Make bucketed caches with this many past rows in their handles."""
    caches, dtype = opened(subject), subject.case.dtype
    rows = [noise(shape, dtype, i) for i, shape in enumerate(_shapes(subject, past))]
    for cache in caches:
        cache.prefill(*rows)
        cache.bind(True)
    return caches


def _shapes(subject: Subject, n: int) -> list[tuple[int, ...]]:
    """Give the shapes of n rows of each layer, `[layers, batch, kv_heads, n, dim]`."""
    return subject.shapes(n, subject.case.model.layers)


def _tokens(subject: Subject) -> list[tuple[Any, ...]]:
    """Make arrays of `case.rows` new rows of each layer to rotate through."""
    return subject.several(_shapes(subject, subject.case.rows))


def _queries(subject: Subject) -> tuple[Any, ...]:
    """Make queries `[layers, batch, heads, n, k_dim]` and an array for the output, both f32."""
    return queries(subject, subject.case.model.layers)


def _newest(subject: Subject, caches: list[Any], past: int) -> None:
    """Append the last of these past rows again by a step, so that only the device has it, behind the padding."""
    (rows, *_), (asked, out) = _tokens(subject), _queries(subject)
    for cache in caches:
        cache.cut(past - 1)
        cache.decode(asked, *rows, 1, False, None, out)


def decode(subject: Subject) -> Job:
    """Run steps of the graph up to the bound: one query and one new row of each layer."""
    case, (asked, out), tokens = subject.case, _queries(subject), _tokens(subject)
    caches = filled(subject, case.context - STEPS)

    def do(i: int, how: Attention) -> None:
        caches[i % len(caches)].decode(asked, *tokens[i % len(tokens)], how.splits, False, None, out)

    def reset() -> None:
        for cache in caches:
            cache.cut(case.context - STEPS)

    return fastest(subject, do, len(caches) * STEPS, reset)


def block(subject: Subject) -> Job:
    """Run a block of n rows and queries at the bound, and the reset after it."""
    caches, (asked, out), tokens = filled(subject, subject.case.context), _queries(subject), _tokens(subject)

    def do(i: int, how: Attention) -> None:
        cache = caches[i % len(caches)]
        cache.block(asked, *tokens[i % len(tokens)], how.splits, None, out)
        cache.unbind()

    return fastest(subject, do)


def cross_over(subject: Subject) -> Job:
    """Append one row beyond the bound: all rows move into the next bound's handles."""
    past = subject.case.context + 1
    caches = filled(subject, past - 1)

    def reset() -> None:
        _newest(subject, caches, past)

    reset()
    return Job(lambda i: caches[i].bind(False), len(caches), reset)


def sync(subject: Subject) -> Job:
    """Copy all rows of all layers to the host, which lacks the newest."""
    caches = filled(subject, subject.case.context)

    def reset() -> None:
        _newest(subject, caches, subject.case.context)

    reset()
    return Job(lambda i: caches[i].sync(), len(caches), reset)


def encode(subject: Subject) -> Job:
    """Install an encoder's rows for all layers; they are on the device."""
    cache, sources = subject.open("bucket"), subject.several(_shapes(subject, subject.case.context))
    return Job(lambda i: cache.encode(*sources[i % len(sources)]))


def cross(subject: Subject) -> Job:
    """Attend with queries over an encoder's rows."""
    rows, (asked, out) = subject.arrays(_shapes(subject, subject.case.context)), _queries(subject)
    caches = opened(subject)
    for cache in caches:
        cache.encode(*rows)
    return fastest(subject, lambda i, how: caches[i % len(caches)].cross(asked, how.splits, out))


def _config(case: Case) -> Config:
    bounds = f"{case.context}-{2 * case.context}"
    return case.config(layers=case.model.layers, bounds=bounds, batch=case.batch)


def _held(case: Case) -> int:
    return case.context * traffic.stacked(_config(case)).row_bytes


def _crossing(case: Case) -> int:
    return 3 * _held(case)


def _stepped(case: Case, rows: int) -> traffic.Traffic:
    return traffic.attended(traffic.stacked(_config(case)), case.model.heads, case.rows, rows)


def _decoded(case: Case) -> traffic.Traffic:
    """Give the traffic of an average step: its query sees `context - STEPS + 1` to `context` rows."""
    return _stepped(case, case.context - STEPS // 2)


def _blocked(case: Case) -> traffic.Traffic:
    return _stepped(case, case.context + case.rows)


def _crossed(case: Case) -> traffic.Traffic:
    return traffic.layered(_config(case), case.context + 1)


def _whole(case: Case) -> traffic.Traffic:
    return traffic.layered(_config(case), case.context)


def _asked(case: Case) -> traffic.Traffic:
    return traffic.asked(traffic.stacked(_config(case)), case.model.heads, case.rows, case.context)


WORK = {
    "bucket decode": Work(_config, _decoded, _held, decode),
    "bucket block": Work(_config, _blocked, _held, block),
    "bucket crossing": Work(_config, _crossed, _crossing, cross_over),
    "bucket sync": Work(_config, lambda case: _whole(case)._replace(limit="download"), _held, sync),
    "encode": Work(_config, _whole, _held, encode),
    "cross attention": Work(_config, _asked, _held, cross),
}
