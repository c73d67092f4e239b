"""The neighbours of a trace: those one simplification away, those with one number greater or one operation more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from random import Random

from kvconform.generate.fit_to_adapter import fitted, suits
from kvconform.generate.shrink import REACHES, SIZES, simpler
from kvconform.mutants.trace_sources import covers
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.operations.table import Operation
from kvspec.reading.clauses import index
from kvspec.trace import Trace, from_json

SIMPLER, GREATER, LONGER = 8, 8, 12
"""How many of each, spread over all there are."""

EXAMPLES, COVERED, DRAWN = 60, 40, 60
"""Worked examples, traces of covers, and drawn ones that bugs are told apart on."""


def neighbours(trace: Trace, adapter: Description) -> list[Trace]:
    """Some of them, the same every time, that the adapter can be asked to do."""
    longer = (Trace(trace.kind, trace.config, (*trace.ops, op)) for op in _operations(trace.kind))
    sorts = (simpler(trace), SIMPLER), (_greater(trace), GREATER), (longer, LONGER)
    return [t for near, most in sorts for t in spread(list(_valid(near, adapter)), most)]


def probes(clauses: Iterable[str], near: Trace, adapter: Description) -> list[Trace]:
    """Traces that may tell bugs apart, such as the adapter can be asked to do.

    They are worked examples of the clauses that the bugs break, some of what the covers of these chapters hold, and
    a trace that they agree on, drawn out.
    """
    own = [index()[c] for c in clauses if c in index()]
    told = [e.trace for c in own for e in c.examples]
    covered = [i.trace for chapter in dict.fromkeys(c.chapter for c in own) for i in covers(chapter)]
    chosen = *spread(told, EXAMPLES), *spread(covered, COVERED)
    return [*fitted(chosen, adapter), *_valid(_drawn_out(near), adapter)]


def _drawn_out(trace: Trace) -> Iterator[Trace]:
    """The trace in greater sizes, with numbers that reach them, and a few operations more; the same every time."""
    random = Random(0)
    for _ in range(DRAWN):
        more = random.randrange(4)
        config = trace.config.changed(
            **{s: getattr(trace.config, s) + more for s in SIZES if getattr(trace.config, s)}
        )
        ops = [{k: v + random.choice((0, more)) if k in REACHES else v for k, v in op.items()} for op in trace.ops]
        yield Trace(trace.kind, config, (*ops, *random.choices(_operations(trace.kind), k=3)))


def _greater(trace: Trace) -> Iterator[Trace]:
    """The trace with one number of it greater by one."""
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
    """At most so many, spread over all."""
    every = len(traces) / most
    return list(traces) if every <= 1 else [traces[int(i * every)] for i in range(most)]


@cache
def _operations(kind: str) -> tuple[Operation, ...]:
    """What is done on a kind of cache in any worked example, each once, the shortest first."""
    traces = (e.trace for c in index().values() for e in c.examples if e.trace.kind == kind)
    texts = {json.dumps(op, sort_keys=True) for trace in traces for op in trace.ops}
    return tuple(json.loads(text) for text in sorted(texts, key=lambda text: (len(text), text)))


def _valid(traces: Iterable[Trace], adapter: Description) -> Iterator[Trace]:
    for trace in traces:
        with suppress(BadInput):  # it names a cache or a snapshot that there is not, or costs too much
            checked = from_json(trace.to_json())
            if suits(checked, adapter):
                yield checked
