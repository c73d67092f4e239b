"""What the operations of a trace take, for the list model: rows by their serials, arrays by their shapes."""

from __future__ import annotations

from typing import Any

from kvconform.oracle.padded_block import PaddedBlock, Shapes
from kvconform.oracle.trace_inputs import TAKES, RunInputs, TraceInputs, through
from kvref.list_model.rows import Queries, Rows
from kvspec.contract import Pair
from kvspec.operations.table import OF_REQUESTS, RUN, TAKES_QUERIES, TAKES_ROWS, Operation
from kvspec.session.step import NOTHING, Inputs


def named(inputs: TraceInputs, op: Operation, made: Inputs | None = None) -> Inputs:
    """Give what goes with an operation, without arrays but those that were `made`."""
    if op["op"] == RUN.name:
        return Inputs(each=NamedInputs(inputs, made.each if made else None))
    given = made or (NOTHING if op["op"] in TAKES else inputs.make(op))
    if op["op"] not in TAKES:
        return given
    rows = _rows(inputs, op, given.rows) if op["op"] in TAKES_ROWS else None
    if op["op"] not in TAKES_QUERIES:
        return Inputs(rows)
    queries: Any = Queries(inputs.queries_shape(op), op.get("q_dtype") or "f32", given.queries)
    return Inputs(rows, queries, given.logical if made else through(op))


def _rows(inputs: TraceInputs, op: Operation, made: Pair | None) -> Pair:
    serials, (_, config) = inputs.serials(op), inputs.opened_as(op)
    shapes, arrays = _shapes(inputs, op), made or (None, None)
    dtype, fill = op.get("dtype") or config.dtype, op.get("fill") or "legible"
    each: Any = (Rows(serials, shape, dtype, fill, a) for shape, a in zip(shapes, arrays, strict=True))
    return Pair(*each)


def _shapes(inputs: TraceInputs, op: Operation) -> Shapes:
    """The shapes of keys and of values."""
    _, config = inputs.opened_as(op)
    if op["op"] in OF_REQUESTS:
        one = 1, max(0, config.kv_heads), len(inputs.requests.serials(op))
        return (*one, config.k_dim), (*one, config.v_dim)
    if "lengths" in op:
        return PaddedBlock(op, config).shapes()
    rows = 1 if op["op"] in ("step", "replay") else inputs.extent(op)[1]
    values = rows if op.get("values") is None else op["values"]
    return inputs.rows_shape(op, "k", rows), inputs.rows_shape(op, "v", values)


class NamedInputs:
    """The inputs of the operations of a run, for the list model: without arrays, if those of the trace have none.
    Arrays of some operations alone would stand for rows of others: serials are given again after a refusal."""

    def __init__(self, inputs: TraceInputs, arrays: Any) -> None:
        self._arrays, self._wanted = arrays or RunInputs(inputs), arrays is not None

    def make(self, op: Operation) -> Inputs:
        """The inputs of the next operation."""
        return named(self._arrays.trace_inputs, op, self._arrays.make(op) if self._wanted else None)

    def done(self, op: Operation, result: str) -> None:
        """What became of it is known."""
        self._arrays.done(op, result)
