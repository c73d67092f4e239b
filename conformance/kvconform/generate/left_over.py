"""Worked examples at real geometries, of what no walk does there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain

from kvconform.generate import frozen_walks, geometry_traces
from kvconform.generate.real_geometry import Geometry
from kvconform.generate.walks import LATENT, MANY
from kvconform.oracle.follow import ModelledTrace
from kvspec.chapters import CHAPTERS
from kvspec.operations.table import OPEN, RUN
from kvspec.trace import Trace


def left_over(kind: str, geometry: Geometry) -> tuple[Trace, ...]:
    """Give worked examples at a geometry, of what no walk does there."""
    return geometry_traces.traces(kind, geometry, done(kind, geometry.layers))


@cache
def done(kind: str, layers: int) -> frozenset[str]:
    """Give the operations that the walks of any run do at real widths and with many heads. Give none if more layers
    are wanted than the walks of the kind have."""
    each = [frozen_walks.given(kind, frozenset(CHAPTERS), scale, few=True) for scale in (LATENT, MANY)]
    fewer = {trace.config.layers or layers for trace in each[1]} - {layers, MANY.layers}
    taken = (frozenset(chain.from_iterable(map(_taken, traces))) for traces in each)
    return frozenset() if fewer and layers > MANY.layers else frozenset.intersection(*taken)


def _taken(trace: Trace) -> Iterator[str]:
    """The operations of a trace that are taken, without those that nobody looked at, and those that open caches."""
    for op, result in zip(trace.ops, _results(trace), strict=True):
        if result == "ok" and op["op"] not in (RUN.name, OPEN.name):
            yield op["op"]


def _results(trace: Trace) -> Iterator[str]:
    if trace.frozen is not None:
        return (outcome.result for outcome in trace.frozen.outcomes)
    following = ModelledTrace(trace)
    return (following.follow(op).result for op in trace.ops)
