"""The neighbours of a trace: those one simplification away, and those that are one operation longer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from kvconform.shrink import simpler
from kvspec.clauses import index
from kvspec.errors import BadInput
from kvspec.operations import Operation
from kvspec.trace import Trace, from_json

SIMPLER, LONGER = 10, 14
"""How many of each, spread over all there are."""


def neighbours(trace: Trace) -> list[Trace]:
    """Some of them, the same every time."""
    shorter = spread(list(_valid(simpler(trace))), SIMPLER)
    longer = (Trace(trace.profile, trace.config, (*trace.ops, op)) for op in _operations(trace.profile))
    return [*shorter, *spread(list(_valid(longer)), LONGER)]


def examples(profiles: Iterable[str]) -> list[Trace]:
    """The worked examples of some chapters."""
    return [e.trace for c in index().values() if c.profile in set(profiles) for e in c.examples]


def spread(traces: Sequence[Trace], most: int) -> list[Trace]:
    """At most so many, spread over all."""
    every = len(traces) / most
    return list(traces) if every <= 1 else [traces[int(i * every)] for i in range(most)]


@cache
def _operations(kind: str) -> tuple[Operation, ...]:
    """What is done on a kind of cache in any worked example, each once, the shortest first."""
    traces = (e.trace for c in index().values() for e in c.examples if e.trace.profile == kind)
    texts = {json.dumps(op, sort_keys=True) for trace in traces for op in trace.ops}
    return tuple(json.loads(text) for text in sorted(texts, key=lambda text: (len(text), text)))


def _valid(traces: Iterable[Trace]) -> Iterator[Trace]:
    for trace in traces:
        try:
            yield from_json(trace.to_json())
        except BadInput:
            continue  # it names a cache or a snapshot that there is not, or costs too much
