"""Bucketed caches: steps of a graph at a bound, blocks, another bound, the way to the host, cross-attention."""

from __future__ import annotations

from typing import Any

from kvconform.profiling.case import ALWAYS, Case, Job, Operation
from kvconform.profiling.random_rows import noise, turns
from kvconform.profiling.subject import Bench
from kvconform.profiling.workloads.attention import fastest, queries
from kvspec import traffic
from kvspec.contract import Attention
from kvspec.geometry import Config

STEPS = 33
"""Steps up to a bound, after which as many rows are cut."""

Rows = tuple[Any, ...]


def filled(bench: Bench, past: int) -> list[Any]:
    """Bucketed caches with so many past rows, which their handles hold."""
    rows = _rows(bench, past)
    caches = [bench.open("bucket") for _ in range(bench.turns(bench.case.context * bench.case.model.layers))]
    for cache in caches:
        cache.prefill(*rows)
        cache.bind(True)
    return caches


def _rows(bench: Bench, n: int, turn: int = 0) -> Rows:
    """Rows `[layers, batch, kv_heads, n, dim]` on the host."""
    case, layers = bench.case, bench.case.model.layers
    shapes = [(layers, *bench.config.shape(kind, n)) for kind in "kv"]
    return tuple(noise(shape, case.dtype, 2 * turn + i) for i, shape in enumerate(shapes))


def _tokens(bench: Bench) -> list[Rows]:
    """`case.rows` new rows of each layer that take turns."""
    nbytes = bench.case.rows * traffic.stacked(bench.config).row_bytes
    return [bench.placed(*_rows(bench, bench.case.rows, i)) for i in range(turns(bench.memory, nbytes, 64))]


def _queries(bench: Bench) -> Rows:
    """Queries `[layers, batch, heads, n, k_dim]` and a place for the output, both f32."""
    return queries(bench, bench.case.model.layers)


def _newest(bench: Bench, caches: list[Any], past: int) -> None:
    """The last of so many past rows anew, by a step: the device alone has it, behind the padding."""
    (rows, *_), (asked, out) = _tokens(bench), _queries(bench)
    for cache in caches:
        cache.cut(past - 1)
        cache.decode(asked, *rows, 1, False, None, out)


def decode(bench: Bench) -> Job:
    """A step of the graph up to the bound: one query and one new row of each layer."""
    case, (asked, out), tokens = bench.case, _queries(bench), _tokens(bench)
    caches = filled(bench, case.context - STEPS)

    def do(i: int, how: Attention) -> None:
        caches[i % len(caches)].decode(asked, *tokens[i % len(tokens)], how.splits, False, None, out)

    def reset() -> None:
        for cache in caches:
            cache.cut(case.context - STEPS)

    return fastest(bench, do, len(caches) * STEPS, reset)


def block(bench: Bench) -> Job:
    """A block of n rows and queries at the bound, and the reset after it."""
    caches, (asked, out), tokens = filled(bench, bench.case.context), _queries(bench), _tokens(bench)

    def do(i: int, how: Attention) -> None:
        cache = caches[i % len(caches)]
        cache.block(asked, *tokens[i % len(tokens)], how.splits, None, out)
        cache.unbind()

    return fastest(bench, do)


def cross_over(bench: Bench) -> Job:
    """A row more than the bound has: all rows into the handles of the next."""
    past = bench.case.context + 1
    caches = filled(bench, past - 1)

    def reset() -> None:
        _newest(bench, caches, past)

    reset()
    return Job(lambda i: caches[i].bind(False), len(caches), reset)


def sync(bench: Bench) -> Job:
    """All rows of all layers to the host, which lacks the newest."""
    caches = filled(bench, bench.case.context)

    def reset() -> None:
        _newest(bench, caches, bench.case.context)

    reset()
    return Job(lambda i: caches[i].sync(), len(caches), reset)


def encode(bench: Bench) -> Job:
    """The rows of an encoder, for all layers, which are on the device."""
    cache, layers = bench.open("bucket"), bench.case.model.layers
    count = bench.turns(bench.case.context * layers)
    sources = [bench.placed(*_rows(bench, bench.case.context, i)) for i in range(count)]
    return Job(lambda i: cache.encode(*sources[i % count]), ALWAYS)


def cross(bench: Bench) -> Job:
    """Queries over the rows of an encoder."""
    rows, (asked, out) = bench.placed(*_rows(bench, bench.case.context)), _queries(bench)
    caches = [bench.open("bucket") for _ in range(bench.turns(bench.case.context * bench.case.model.layers))]
    for cache in caches:
        cache.encode(*rows)
    return fastest(bench, lambda i, how: caches[i % len(caches)].cross(asked, how.splits, out))


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
    """Of a step in the middle: its query sees from `context - STEPS + 1` rows to `context`."""
    return _stepped(case, case.context - STEPS // 2)


def _blocked(case: Case) -> traffic.Traffic:
    return _stepped(case, case.context + case.rows)


def _crossed(case: Case) -> traffic.Traffic:
    return traffic.layered(_config(case), case.context + 1)


def _whole(case: Case) -> traffic.Traffic:
    return traffic.layered(_config(case), case.context)


def _asked(case: Case) -> traffic.Traffic:
    return traffic.asked(traffic.stacked(_config(case)), case.model.heads, case.rows, case.context)


ONLY = ("bucket",)
OPERATIONS = (
    Operation("bucket decode", "a step of all layers below a bound", ONLY, _config, _decoded, _held, decode),
    Operation("bucket block", "a block of rows and its reset", ONLY, _config, _blocked, _held, block),
    Operation("bucket crossing", "all rows to another bound", ONLY, _config, _crossed, _crossing, cross_over),
    Operation("bucket sync", "the rows of all layers to the host", ONLY, _config, _whole, _held, sync),
    Operation("encode", "the rows of an encoder, of all layers", ONLY, _config, _whole, _held, encode),
    Operation("cross attention", "queries over those", ONLY, _config, _asked, _held, cross),
)
