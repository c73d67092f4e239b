"""The neighbours of a trace: one simplification away, one number greater, or one operation longer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from random import Random

from kvconform.generate.fit_to_adapter import claimed, fitted, suits
from kvconform.generate.shrink.numbers import REACHES, SIZES
from kvconform.generate.shrink.simpler import simpler
from kvconform.mutants.trace_sources import covers
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.operations.table import Operation
from kvspec.reading.clauses import index
from kvspec.trace import Trace, from_json

SIMPLER, GREATER, LONGER = 8, 8, 12
"""The number of neighbours of each sort, spread over all."""

EXAMPLES, COVERED, VARIED = 60, 40, 60
"""Worked examples, traces of covers and random variations that tell bugs apart."""


def neighbours(trace: Trace, adapter: Description) -> list[Trace]:
    """Some neighbours that need only what the adapter claims; the same every time."""
    longer = (Trace(trace.kind, trace.config, (*trace.ops, op)) for op in _operations(trace.kind))
    sorts = (simpler(trace), SIMPLER), (_greater(trace), GREATER), (longer, LONGER)
    return [t for near, most in sorts for t in spread(list(_valid(near, adapter)), most)]


def probes(clauses: Iterable[str], near: Trace, adapter: Description) -> list[Trace]:
    """Traces that may tell bugs apart, and suit the adapter.

    These are worked examples of the clauses that the bugs break, some traces of their chapters' covers, and
    variations of a trace that the bugs answer alike.
    """
    broken = [index()[c] for c in clauses if c in index()]
    examples = [e.trace for c in broken for e in c.examples]
    covered = [i.trace for chapter in dict.fromkeys(c.chapter for c in broken) for i in covers(chapter)]
    chosen = *spread(examples, EXAMPLES), *spread(covered, COVERED)
    return [*fitted(chosen, adapter), *_valid(_variations(near), adapter)]


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


def _greater(trace: Trace) -> Iterator[Trace]:
    """The trace with one of its numbers greater by one."""
    for i, op in enumerate(trace.ops):
        for name, value in op.items():
            if type(value) is int:
                yield Trace(
                    trace.kind, trace.config, (*trace.ops[:i], {**op, name: value + 1}, *trace.ops[i + 1 :])
                )
    for name in SIZES:
        size = getattr(trace.config, name)
        if size:
            yield Trace(trace.kind, trace.config.changed(**{name: size + 1}), trace.ops)


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


def _valid(traces: Iterable[Trace], adapter: Description) -> Iterator[Trace]:
    for trace in traces:
        with suppress(BadInput):  # it names a cache or a snapshot that does not exist, or costs too much
            checked = from_json(trace.to_json())
            if suits(checked, adapter) and claimed(checked, adapter) == checked:
                yield checked
