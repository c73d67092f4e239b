"""The census: each kind of cache does each of its operations beyond each boundary of geometry, for any seed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from kvadapters.reference import Reference
from kvconform.generate.geometry_traces import traces
from kvconform.generate.real_geometry import BOUNDARIES, GEOMETRIES, Met, beyond
from kvconform.oracle.trace_inputs import TraceInputs
from kvspec.operations.table import OF_KIND, RUN, Operation, cache_of, each_of
from kvspec.registry import CACHES, KINDS, RECORDS
from kvspec.session.driver import Session
from kvspec.trace import Trace

BATCHED = {*(operation.name for operation in RECORDS["batch"].operations), "attendbatch"}
"""What a store does to its batch."""


REFUSED = {"growing": {"fit"}, "ring": {"fit"}}
"""What caches refuse whatever their geometry (MEM-17)."""


def sizes(kind: str, operation: str) -> set[str]:
    """The sizes that caches of a kind have when they do an operation."""
    batch = kind in (*CACHES, "ragged", "bucket") or operation in BATCHED
    return (
        {"kv_heads", "k_dim", "v_dim"}
        | ({"batch"} if batch else set())
        | ({"layers"} if kind in ("store", "bucket") else set())
    )


def done(trace: Trace) -> Iterator[tuple[str, str, Met]]:
    """Perform a trace; of each operation that is not refused give kind, name and boundaries."""
    session, inputs, sequences = Session(Reference(), observe=()), TraceInputs(trace), dict[str, int]()
    session.begin(trace.kind, trace.config)
    for op in trace.ops:
        result = session.do(op, inputs.make(op)).result
        inputs.done(op, result)
        for part in (*each_of(op), *([op] if op["op"] == RUN.name else ())):
            if result == "ok":
                yield _met(part, inputs, sequences)


def _met(op: Operation, inputs: TraceInputs, sequences: dict[str, int]) -> tuple[str, str, Met]:
    name = cache_of(op["ops"][-1] if op["op"] == RUN.name else op)
    sequences[name] = op.get("m", sequences.get(name, 0))
    kind, config = inputs.opened[name]
    return kind, op["op"], beyond(config, sequences[name])


@cache
def census() -> dict[tuple[str, str], set[tuple[str, int]]]:
    """The boundaries that each kind of cache lay beyond in each of its operations."""
    found: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for each in (trace for kind in KINDS for geometry in GEOMETRIES for trace in traces(kind, geometry)):
        for kind, operation, met in done(each):
            found.setdefault((kind, operation), set()).update(met)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_each_operation_of_each_kind_meets_each_class_of_geometry(kind: str) -> None:
    for operation in {*OF_KIND[kind]} - REFUSED.get(kind, set()):
        wanted = {(size, least) for size in sizes(kind, operation) for least in BOUNDARIES[size]}
        assert wanted <= census().get((kind, operation), set()), (kind, operation)
