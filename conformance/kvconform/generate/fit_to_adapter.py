"""Fits traces to the limits an adapter declares: its dtypes, the rows of an append, the batch.

Frozen covers and worked examples use one dtype and append several rows. An engine that takes another dtype, or one
row at a time, is judged on the same traces with that dtype, and with each append (and each draft) split into as
many as needed. The batch limit holds for the batch of a cache and for the sequences of a store's batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvspec.contract import Description
from kvspec.operations.table import Operation, argument
from kvspec.reading.clauses import Clause
from kvspec.trace import Trace, used_chapters

PIECES = 64
"""Most pieces of one append; a trace that needs more is left out."""


APPENDS = ("append", "draft")
"""Operations that the append limit applies to, and that can be done in pieces."""


def within(trace: Trace, adapter: Description) -> Trace:
    """Fit the trace to the adapter's limits; `suits` tells whether the result is within them."""
    config, largest = trace.config, adapter.largest_append
    if config.dtype not in adapter.dtypes:
        config = config.changed(dtype=_other(trace, adapter))
    if adapter.largest_batch is not None and config.batch > adapter.largest_batch:
        config = config.changed(batch=adapter.largest_batch)
    ops = trace.ops if largest is None else tuple(piece for op in trace.ops for piece in _pieces(op, largest))
    return Trace(trace.kind, config, ops)


def _other(trace: Trace, adapter: Description) -> str:
    """Choose a dtype that the adapter takes and no operation names, so that misfits stay misfits; else keep the
    dtype.

    A trace that copies between dtypes keeps its own, because it tests the cast.
    """
    named = {op["dtype"] for op in trace.ops if op.get("dtype")}
    if named and any(op["op"] == "copy" for op in trace.ops):
        return trace.config.dtype
    return next((d for d in adapter.dtypes if d not in named), trace.config.dtype)


def _pieces(op: Operation, largest: int) -> list[Operation]:
    if op["op"] not in APPENDS or not largest < op["n"] <= PIECES * largest or argument(op, "values") is not None:
        return [op]
    whole, rest = divmod(op["n"], largest)
    return [{**op, "n": n} for n in [largest] * whole + [rest] * (rest > 0)]


def suits(trace: Trace, adapter: Description) -> bool:
    """Tell whether the adapter declares the chapters that a trace uses, and the trace is within its limits."""
    return used_chapters(trace) <= set(adapter.chapters) and _in_limits(trace, adapter)


def fitted(traces: Iterable[Trace], adapter: Description) -> Iterator[Trace]:
    """Fit traces to the adapter; leave out those that do not suit it."""
    return (trace for given in traces if suits(trace := within(given, adapter), adapter))


def _in_limits(trace: Trace, adapter: Description) -> bool:
    appends = (*APPENDS, "attend")
    rows = [op.get(name) or 0 for op in trace.ops if op["op"] in appends for name in ("n", "values")]
    dtypes = {op["dtype"] for op in trace.ops if op.get("dtype")} | {trace.config.dtype}
    batches = [trace.config.batch, *(op["batch"] for op in trace.ops if op["op"] == "open" and op.get("batch"))]
    batches += [op["m"] for op in trace.ops if op["op"] == "batch"]
    sizes = ((adapter.largest_append, max(rows, default=0)), (adapter.largest_batch, max(batches)))
    return dtypes <= set(adapter.dtypes) and all(limit is None or size <= limit for limit, size in sizes)


def beyond(clause: Clause, adapter: Description) -> bool:
    """Tell whether every worked example of the clause is beyond the declared limits, unless fitted."""
    return not any(_in_limits(e.trace, adapter) for e in clause.examples)
