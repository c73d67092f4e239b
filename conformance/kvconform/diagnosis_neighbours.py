"""The neighbours of a trace: those one simplification away, those with one number greater or one operation more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache

from kvconform.limits import suits, within
from kvconform.shrink import SIZES, simpler
from kvspec.clauses import index
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.operations import Operation
from kvspec.trace import Trace, from_json

SIMPLER, GREATER, LONGER = 8, 8, 12
"""How many of each, spread over all there are."""

MANY, SOME = 60, 20
"""How many worked examples of the clauses asked for, and of their chapters' others."""


def neighbours(trace: Trace, adapter: Description) -> list[Trace]:
    """Some of them, the same every time, that the adapter can be asked to do."""
    longer = (Trace(trace.profile, trace.config, (*trace.ops, op)) for op in _operations(trace.profile))
    sorts = (simpler(trace), SIMPLER), (_greater(trace), GREATER), (longer, LONGER)
    return [t for near, most in sorts for t in spread(list(_valid(near, adapter)), most)]


def examples(clauses: Iterable[str], profiles: Iterable[str], adapter: Description) -> list[Trace]:
    """Worked examples that the adapter can be asked to do: all of some clauses, and some of others in some chapters."""
    own, chapters = set(clauses), set(profiles)
    told = [c for c in index().values() if c.profile in chapters and c.id not in own]
    sorts = ((c for c in index().values() if c.id in own), MANY), (told, SOME)
    traces = ((within(e.trace, adapter) for c in found for e in c.examples) for found, _ in sorts)
    both = zip(traces, sorts, strict=True)
    return [t for found, (_, most) in both for t in spread([t for t in found if suits(t, adapter)], most)]


def _greater(trace: Trace) -> Iterator[Trace]:
    """The trace with one number of it greater by one."""
    for i, op in enumerate(trace.ops):
        for name, value in op.items():
            if type(value) is int:
                yield Trace(
                    trace.profile, trace.config, (*trace.ops[:i], {**op, name: value + 1}, *trace.ops[i + 1 :])
                )
    for name in SIZES:
        size = getattr(trace.config, name)
        if size:
            yield Trace(trace.profile, trace.config.changed(**{name: size + 1}), trace.ops)


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


def _valid(traces: Iterable[Trace], adapter: Description) -> Iterator[Trace]:
    for trace in traces:
        with suppress(BadInput):  # it names a cache or a snapshot that there is not, or costs too much
            checked = from_json(trace.to_json())
            if suits(checked, adapter):
                yield checked
