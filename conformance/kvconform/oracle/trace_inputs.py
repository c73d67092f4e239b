"""What the operations of a trace take when it is replayed: rows, queries, masks and configs."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from kvspec import masks
from kvspec.contract import Pair
from kvspec.forms import LATENT
from kvspec.geometry import Array, Config, encoded_layers
from kvspec.operations.table import (
    CHANGE_REQUESTS,
    OF_REQUESTS,
    OPERATIONS,
    RUN,
    TAKES_QUERIES,
    TAKES_ROWS,
    Operation,
    argument,
    cache_of,
    overridden,
    parts_of,
)
from kvspec.registry import FIELDS_OF_SOME, opened
from kvspec.rows.book import SerialBook
from kvspec.rows.fills import cast, queries
from kvspec.session.step import NOTHING, Inputs
from kvspec.trace import Trace, opening

if TYPE_CHECKING:
    from kvconform.oracle.padded_block import PaddedBlock
    from kvconform.oracle.request_rows import RequestRows

TAKES = (*TAKES_ROWS, *TAKES_QUERIES)
"""Operations that arrays are made for."""


class TraceInputs:
    """Makes what the operations of one trace need. Rows get their serials here. Whether any are read back is
    `reads`."""

    def __init__(self, trace: Trace, reads: bool = True) -> None:
        texts = (part.get("form") for op in trace.ops for part in parts_of(op))
        self.book = SerialBook(any_nan=not {trace.config.form, *texts} <= {None, LATENT}, reads=reads)
        self.opened = {"A": (trace.kind, trace.config)}
        self.batches: dict[str, int] = {}
        self.captured: dict[str, Operation] = {}
        """The operation that captured each captured attention."""
        self._trace = trace

    @cached_property
    def requests(self) -> RequestRows:
        """The requests of the trace."""
        from kvconform.oracle.request_rows import RequestRows  # few caches keep rows by tokens

        return RequestRows(self.book)

    def keep_rows(self) -> dict[int, tuple[Array, Array]] | None:
        """Keep the rows that are made from now on, for the list model, and give them by their serials. Give None
        where they are not needed: no operation asks for rows again, and names tell all rows apart."""
        if any(map(_needs_rows, (part for op in self._trace.ops for part in parts_of(op)))) or self.folds():
            self.book.kept = {}
        return self.book.kept

    def folds(self) -> bool:
        """Whether rows are folded into states, which are read by what they must be made of."""
        opened_ = (part.get("of") for op in self._trace.ops for part in parts_of(op))
        return any("state" in (of or "") for of in (self._trace.config.of, *opened_))

    def make(self, op: Operation) -> Inputs:
        """What goes with this operation."""
        match op["op"]:
            case RUN.name:
                return Inputs(each=RunInputs(self))
            case "mask":
                return Inputs(logical=masks.from_json(op["parts"]))
            case "open":
                return Inputs(opening=opening(self._trace, op))
            case "init" | "fit":
                return Inputs(opening=self._geometry(op))
        rows = self._rows(op) if op["op"] in TAKES_ROWS else None
        if op["op"] in TAKES_QUERIES:
            return Inputs(rows, self._queries(op), through(op))
        return NOTHING if rows is None else Inputs(rows)

    def serials(self, op: Operation) -> list[list[int]]:
        """Give the serials of the rows that an operation takes: of each layer, or of each sequence of a block."""
        if op["op"] in OF_REQUESTS:
            return [self.requests.serials(op)]
        parts, n = self.extent(op)
        counts = self._block(op).lengths if "lengths" in op else [n] * parts
        return [list(range(a, b)) for a, b in pairwise(accumulate(counts, initial=self.book.next))]

    def opened_as(self, op: Operation) -> tuple[str, Config]:
        """Kind and config of the cache an operation is for; those of A where that was never opened."""
        return self.opened.get(cache_of(op), self.opened["A"])

    def _geometry(self, op: Operation) -> tuple[str, Config]:
        kind, config = self.opened_as(op)
        return kind, overridden(config, op, *FIELDS_OF_SOME)

    def _block(self, op: Operation) -> PaddedBlock:
        """The padded block of an operation on a ragged cache."""
        from kvconform.oracle.padded_block import PaddedBlock  # other kinds take none

        return PaddedBlock(op, self.opened_as(op)[1])

    def _rows(self, op: Operation) -> Pair:
        """Rows in the shape the operation takes: as a cache does, layer upon layer, or token by token."""
        kind, config = self.opened_as(op)
        if op["op"] in OF_REQUESTS:
            return self.requests.rows(op, config)
        if "lengths" in op:
            return self._block(op).rows(self.book)
        parts, n = self.extent(op)
        if op["op"] == "rotate":
            keys, values = self.book.rows(op, config, n)
            return Pair(halved(keys, argument(op, "dims")) if argument(op, "halved") else keys, values)
        if op["op"] == "copy":
            made = self.book.rows({**op, "batch": 1}, config, n)
            return Pair(*(np.ascontiguousarray(a[0].transpose(1, 0, 2)) for a in made))
        if op["op"] in ("step", "replay"):
            made = self.book.stacked(op, config, 1, parts * n)
        else:
            made = self.book.stacked(op, config, n, parts)
            if not opened(kind).layer_axis:
                return Pair(*made)
        return Pair(*(a.reshape(self.rows_shape(op, part, a.shape[2])) for a, part in zip(made, "kv", strict=True)))

    def extent(self, op: Operation) -> tuple[int, int]:
        """How many layers an operation writes rows to, and how many to each; of a step one for each sequence."""
        config = self.opened_as(op)[1]
        layers = config.layers or 1
        if op["op"] == "encode" and config.of:
            layers = max(1, encoded_layers(config))  # those that see none refuse some
        if "lengths" in op:
            return 1, self._block(op).total
        match op["op"]:
            case "step" | "replay":
                return layers, self._sequences(op)
            case "copy":
                return 1, op["n"] if op.get("rows") is None else op["rows"]
        one = not OPERATIONS[op["op"]].layered or op.get("layer") is not None
        return op.get("layers") or (1 if one else layers), op.get("n", 1)

    def rows_shape(self, op: Operation, part: str, n: int) -> tuple[int, ...]:
        """The shape of keys, or of values, for this number of rows."""
        kind, config = self.opened_as(op)
        batch, heads, _, dim = (max(0, size) for size in overridden(config, op).shape(part, n))
        layers, m = self.extent(op)
        match op["op"]:
            case "step" | "replay":
                return layers, m * batch * n, heads, dim
            case "copy":
                return n, heads, dim
            case "rotate":
                return batch, heads, n, dim
            case _ if opened(kind).layer_axis:
                return layers, batch, heads, n, dim
        return layers * batch, heads, n, dim

    def _queries(self, op: Operation) -> Array:
        shape = self.queries_shape(op)
        size = (prod(shape[:-3]), *shape[-3:])
        made = cast(queries(argument(op, "queries"), self.book.next, *size), op.get("q_dtype") or "f32")
        return made.reshape(shape)

    def queries_shape(self, op: Operation) -> tuple[int, ...]:
        """Queries are `[B, heads, n, k_dim]`; of a bucketed cache `[layers, B, heads, n, k_dim]`."""
        kind, config = self.opened_as(op)
        if "lengths" in op:
            return self._block(op).queries()
        how = {**self.captured[op["name"]], **op} if op.get("name") in self.captured else op
        rows = next((op[name] for name in ("q_rows", "n") if op.get(name) is not None), 1)
        batch = self._sequences(op) if op["op"] == "attendbatch" else config.batch
        own = ("q_batch", batch), ("q_dim", config.k_dim)
        batch, dim = (max(0, size if op.get(name) is None else op[name]) for name, size in own)
        shape = batch, max(0, how.get("heads", config.kv_heads)), rows, dim
        return (config.layers or 1, *shape) if opened(kind).layer_axis else shape

    def _sequences(self, op: Operation) -> int:
        return self.batches.get(cache_of(op), 1)

    def done(self, op: Operation, result: str) -> None:
        """The oracle's verdict is known: rows that were taken use up their serials, caches opened are there."""
        if result != "ok" or op["op"] == RUN.name:
            return  # what a run took was noted operation by operation
        name = cache_of(op)
        match op["op"]:
            case "open":
                self.opened[name] = opening(self._trace, op)
                self.batches.pop(name, None)
                if "requests" in vars(self):
                    self.requests.forget(name)
            case "load":
                self.book.rounded_again()
            case "init":
                self.opened[name] = self._geometry(op)
            case "batch":
                self.batches[name] = op["m"]
            case "captureattend":
                self.captured[op["name"]] = op
            case _ if op["op"] in CHANGE_REQUESTS:
                self.requests.done(op)
            case _ if op["op"] in TAKES_ROWS:
                self._turned(op)
                parts, n = self.extent(op)
                self.book.took(op["n"] if op["op"] == "copy" else parts * n)

    def _turned(self, op: Operation) -> None:
        """Rows with keys that are not stored as they were made."""
        if op.get("rope") is not None:
            self.book.by_value |= set(range(self.book.next, self.book.next + op["n"]))


class RunInputs:
    """Makes the inputs of the operations of a run one by one, as the serials of rows follow from what was taken."""

    def __init__(self, trace_inputs: TraceInputs) -> None:
        self.trace_inputs = trace_inputs
        self.made: list[Inputs] = []
        """The inputs of all operations so far."""
        self.performed: list[Operation] = []
        """The operations that were done: one within a run may be refused, and the run goes on."""

    def make(self, op: Operation) -> Inputs:
        """The inputs of the next operation."""
        self.made.append(self.trace_inputs.make(op))
        return self.made[-1]

    def done(self, op: Operation, result: str) -> None:
        """The oracle's verdict on it is known."""
        self.trace_inputs.done(op, result)
        self.performed += [op] if result == "ok" else []


def _needs_rows(op: Operation) -> bool:
    """Whether the content of rows counts, not their names alone."""
    return op["op"] in (*TAKES_QUERIES, "fingerprint", "encode") or op.get("fill", "legible") != "legible"


def through(op: Operation) -> masks.Logical | None:
    """The mask that the queries of an attend look through."""
    return masks.from_json(list(argument(op, "through"))) if op["op"] == "attend" else None


def halved(rows: Array, dims: int | None) -> Array:
    """The first `dims` elements of rows, first the even ones, then the odd ones; then the others."""
    end = rows.shape[-1] if dims is None else max(0, dims)
    parts = rows[..., 0:end:2], rows[..., 1:end:2], rows[..., end:]
    return np.concatenate(parts, axis=-1)
