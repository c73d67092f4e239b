"""The neighbours of a trace, on which one fault of a cache shows, and another one does not.

A neighbour differs by one simplification, one number or one operation. Or it has another geometry, kind of cache,
mask, number of queries or form, or comes later in the life of the cache.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from kvconform.generate import frozen_covers
from kvconform.generate.claims.fit_to_adapter import claimed, fitted, suits
from kvconform.generate.claims.other_kinds import moved
from kvconform.generate.real_geometry import GEOMETRIES, at
from kvconform.generate.shrink.numbers import COUNTS, LARGE, REACHES, SIZES, with_operations
from kvconform.generate.shrink.simpler import simpler
from kvconform.generate.variations import alike, blind, inputs
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.geometry import DTYPES, OWN
from kvspec.operations.table import ARGUMENTS, OF_KIND, TAKES_ROWS, Operation
from kvspec.reading.clauses import index
from kvspec.registry import KINDS
from kvspec.trace import Trace, from_json

EXAMPLES, COVERED = 60, 40
"""Worked examples and traces of covers that tell bugs apart."""

VARIED = 60
"""Random variations that are tried."""

GEOMETRY: dict[str, tuple[Any, ...]] = {
    "k_dim": (8, 17, 64, 128),
    "v_dim": (6, 17, 64, 128),
    "kv_heads": (1, 2, 5, 9, 33),
    "batch": (1, 2, 4, 9),
    "dtype": tuple(DTYPES),
}
"""Values of each field of a geometry, on both sides of the boundaries where kernels change."""

ROWS = (1, 2, 3, 17, 40)
"""Rows that are appended before all else."""

POSITIONS = ("to", "at", "position", "start")
"""Arguments that are positions of rows."""

ROOMS = tuple(name for name, field in OWN.items() if field.most)
"""Sizes that bound how many rows there may be."""

EMPTIES = ("free", "reset")
"""Operations that give up all rows."""

QUERIES = (1, 2, 3)
"""Numbers of queries that a mask is asked for."""


def neighbours(trace: Trace, adapter: Description) -> list[Trace]:
    """Some neighbours that need only what the adapter claims; the same every time, and none twice."""
    near = (t for sort, most in SORTS for t in spread(list(_valid(sort(trace), adapter)), most))
    each = {text_of(t): t for t in near}
    each.pop(text_of(trace), None)
    return list(each.values())


def probes(clauses: Iterable[str], adapter: Description) -> list[Trace]:
    """Traces that may tell bugs apart, and suit the adapter.

    These are worked examples of the clauses that the bugs break, and some traces of their chapters' covers.
    """
    broken = [index()[c] for c in clauses if c in index()]
    examples = [e.trace for c in broken for e in c.examples]
    chapters = dict.fromkeys(chapter for c in broken for chapter in c.chapters)
    covered = [trace for chapter in chapters for trace in frozen_covers.shortest_first(chapter)]
    return list(fitted((*spread(examples, EXAMPLES), *spread(covered, COVERED)), adapter))


def _numbers(trace: Trace) -> Iterator[Trace]:
    """The trace with one of its numbers greater, or less."""
    for i, op in enumerate(trace.ops):
        for name, value in op.items():
            for other in _beside(value):
                yield _with(trace, i, {**op, name: other})
    for name in COUNTS:
        for other in _beside(getattr(trace.config, name)):
            yield replace(trace, config=trace.config.changed(**{name: other}))


def _beside(value: Any) -> Iterator[int]:
    """Numbers beside one, and one that is much greater."""
    if type(value) is int:
        yield from (value + 1, value - 1, *((2 * value + 2,) if 0 <= value <= LARGE else ()))


def _geometries(trace: Trace) -> Iterator[Trace]:
    """The trace with one field of the geometry changed, with both widths, and at the geometries of models."""
    for name, values in GEOMETRY.items():
        yield from (_changed(trace, **{name: value}) for value in values if value != getattr(trace.config, name))
    yield from (_changed(trace, k_dim=width, v_dim=width) for width in GEOMETRY["k_dim"][2:])
    yield from (moved for geometry in GEOMETRIES if (moved := at(trace, geometry)))


def _changed(trace: Trace, **fields: Any) -> Trace:
    return replace(trace, config=trace.config.changed(**fields))


def _kinds(trace: Trace) -> Iterator[Trace]:
    """The trace on other kinds of caches."""
    yield from (other for kind in KINDS if kind != trace.kind and (other := moved(trace, kind)))


def _masks(trace: Trace) -> Iterator[Trace]:
    """The trace with another mask for the same queries, and for as many more or fewer, behind rows and without."""
    for asked in (trace, *itertools.islice(_behind_rows(trace), 1, 2)):
        for i, op in enumerate(asked.ops):
            for name in (a.name for a in ARGUMENTS[op["op"]].values() if a.holds == "mask"):
                yield from _masked(asked, i, name)


def _masked(trace: Trace, i: int, name: str) -> Iterator[Trace]:
    """The trace with other masks in an argument of one operation."""
    at = _asked_by(trace, i)
    for n in dict.fromkeys((trace.ops[at].get("n", 1), *QUERIES)):
        asked = _with(trace, at, {**trace.ops[at], "n": n}) if "n" in trace.ops[at] else trace
        yield from (_with(asked, i, {**asked.ops[i], name: parts}) for parts in _parts(n))


def _asked_by(trace: Trace, i: int) -> int:
    """The operation that gives the queries of a mask: the last that took rows, or the same one."""
    took = (k for k in range(i, -1, -1) if trace.ops[k]["op"] in TAKES_ROWS or "n" in trace.ops[k])
    return next(took, i)


def _parts(queries: Any) -> list[list[Any]]:
    """Masks for a number of queries, of each sort; the arrays are the same for all columns."""
    n = queries if type(queries) is int and 0 < queries <= LARGE else 1
    seen = {"array": [[[[i % 2 == 0] for i in range(n)]]], "dtype": "bool"}
    scores = {"array": [[[[0.5 + i] for i in range(n)]]], "dtype": "f32"}
    return [[], ["causal"], [{"window": 1}], ["causal", {"window": 2}], [seen], [scores, "causal"]]


def _forms(trace: Trace) -> Iterator[Trace]:
    """The trace unobserved, with equal rows, and with inputs in other forms."""
    yield from (form(trace) for form in (blind, alike, inputs))


def _lives(trace: Trace) -> Iterator[Trace]:
    """The trace twice, with all rows given up in between or not, and behind rows."""
    begins = ({"op": name} for name in EMPTIES if name in OF_KIND[trace.kind])
    yield from (replace(trace, ops=(*trace.ops, op, *trace.ops)) for op in begins)
    yield replace(trace, ops=(*trace.ops, *trace.ops))
    yield from _behind_rows(trace)


def _behind_rows(trace: Trace) -> Iterator[Trace]:
    """The trace behind rows that were appended before; positions move with them."""
    first = next((op for op in trace.ops if op["op"] in TAKES_ROWS and "n" in op), None)
    for n in ROWS if first else ():
        later = ({k: v + n if k in POSITIONS and type(v) is int else v for k, v in op.items()} for op in trace.ops)
        yield _roomier(replace(trace, ops=({**(first or {}), "n": n}, *later)), n)


def _roomier(trace: Trace, n: int) -> Trace:
    """The trace with room for more rows; a window stays as it is."""
    rooms = {name: getattr(trace.config, name) for name in ROOMS}
    return _changed(trace, **{name: size + n for name, size in rooms.items() if size})


def _longer(trace: Trace) -> Iterator[Trace]:
    """The trace with one operation more."""
    yield from (replace(trace, ops=(*trace.ops, op)) for op in _operations(trace.kind))


def _variations(trace: Trace) -> Iterator[Trace]:
    """The trace in greater sizes, with numbers that reach them, and three operations more; the same every time."""
    random = Random(0)
    for _ in range(VARIED):
        more = random.randrange(4)
        config = trace.config.changed(
            **{s: getattr(trace.config, s) + more for s in SIZES if getattr(trace.config, s)}
        )
        ops = [{k: v + random.choice((0, more)) if k in REACHES else v for k, v in op.items()} for op in trace.ops]
        yield Trace(trace.kind, config, (*ops, *random.choices(_operations(trace.kind), k=3)))


SORTS: tuple[tuple[Callable[[Trace], Iterator[Trace]], int], ...] = (
    (simpler, 12),
    (_numbers, 16),
    (_geometries, 20),
    (_kinds, 6),
    (_masks, 24),
    (_forms, 3),
    (_lives, 8),
    (_longer, 12),
    (_variations, 24),
)
"""The sorts of neighbours, and how many of each are tried, spread over all."""


def _with(trace: Trace, i: int, op: Operation) -> Trace:
    """The trace with another operation in one place."""
    return with_operations(trace, (*trace.ops[:i], op, *trace.ops[i + 1 :]))


def spread(traces: Sequence[Trace], most: int) -> list[Trace]:
    """At most `most` of these, spread over all."""
    every = len(traces) / most
    return list(traces) if every <= 1 else [traces[int(i * every)] for i in range(most)]


@cache
def _operations(kind: str) -> tuple[Operation, ...]:
    """The operations on a kind of cache in all worked examples, each once, the shortest first."""
    traces = (e.trace for c in index().values() for e in c.examples if e.trace.kind == kind)
    texts = {json.dumps(op, sort_keys=True) for trace in traces for op in trace.ops}
    return tuple(json.loads(text) for text in sorted(texts, key=lambda text: (len(text), text)))


def text_of(trace: Trace) -> str:
    """The trace as text, which tells traces apart."""
    return json.dumps(trace.to_json(), sort_keys=True)


def _valid(traces: Iterable[Trace], adapter: Description) -> Iterator[Trace]:
    for trace in traces:
        with suppress(BadInput):  # it names a cache or a snapshot that does not exist, or costs too much
            checked = from_json(trace.to_json())
            if suits(checked, adapter) and claimed(checked, adapter) == checked:
                yield checked
