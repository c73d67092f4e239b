"""What vectors are frozen: worked examples, and a small covering set of the covers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kvconform.generate import frozen_covers
from kvconform.generate.covers import FROZEN
from kvconform.oracle.reference import CitingReference
from kvconform.oracle.trace_inputs import TraceInputs
from kvconform.vectors.vector import Vector
from kvspec.reading.clauses import examples_of
from kvspec.trace import Trace

Happening = tuple[str, ...]
"""An event: an operation with its result and exercised clauses, or with the operation before it."""


def examples(chapter: str) -> Iterator[Vector]:
    """Give every worked example of a chapter."""
    return (Vector(e.id, "examples", e.trace, e.clause) for e in examples_of(chapter))


def covering(chapter: str) -> Iterator[Vector]:
    """Choose greedily the traces of a chapter's frozen covers that together show all their events: each operation
    with each result, each set of exercised clauses, and each pair of successive operations."""
    covers = frozen_covers.load(chapter)
    whole = [(c.name, i, trace.one_by_one()) for c in covers for i, trace in enumerate(c.traces())]
    for at in _chosen([trace for _, _, trace in whole]):
        name, i, trace = whole[at]
        yield Vector(f"{chapter}/{name}/{i}".replace(" ", "-"), "covering", trace)


def _chosen(whole: list[Trace]) -> Iterator[int]:
    """Choose, again and again, the trace with most remaining events; of equals the shortest."""
    each = [happens(trace) for trace in whole]
    left = set[Happening]().union(*each)
    while left:
        best = max(range(len(whole)), key=lambda i: (len(each[i] & left), -len(whole[i].ops)))
        left -= each[best]
        yield best


def happens(trace: Trace) -> set[Happening]:
    """Give all events of a trace."""
    reference, trace_inputs = CitingReference(observe=FROZEN), TraceInputs(trace)
    reference.begin(trace.kind, trace.config)
    found, before = set[Happening](), "open"
    for op in trace.ops:
        step = reference.do(op, trace_inputs.make(op))
        trace_inputs.done(op, step.result)
        found |= {("cites", op["op"], step.result, *sorted(step.cites)), ("after", before, op["op"], step.result)}
        before = op["op"]
    return found


MAKERS: dict[str, Callable[[str], Iterable[Vector]]] = {"examples": examples, "covering": covering}
"""Functions that make the vectors of a chapter, by source."""
