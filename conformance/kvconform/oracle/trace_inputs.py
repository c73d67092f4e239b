"""What the operations of a trace take when it is replayed: rows, queries, masks and configs."""

from __future__ import annotations

import numpy as np

from kvspec import masks
from kvspec.contract import Pair
from kvspec.geometry import Array, Config
from kvspec.operations.table import TAKES_QUERIES, TAKES_ROWS, Operation, argument, cache_of
from kvspec.registry import FIELDS_OF_SOME
from kvspec.rows import SerialBook, cast, queries
from kvspec.session.step import NOTHING, Inputs
from kvspec.trace import Trace, opening, overridden


class TraceInputs:
    """Makes what the operations of one trace need; rows get their serials here."""

    def __init__(self, trace: Trace) -> None:
        self.book = SerialBook()
        self.opened = {"A": (trace.kind, trace.config)}
        self.batches: dict[str, int] = {}
        self.captured: dict[str, Operation] = {}
        """The operation that captured each captured attention."""
        self._trace = trace
        if any(op["op"] in TAKES_QUERIES for op in trace.ops):
            self.book.kept = {}

    def make(self, op: Operation) -> Inputs:
        """What goes with this operation."""
        match op["op"]:
            case "mask":
                return Inputs(logical=masks.from_json(op["parts"]))
            case "open":
                return Inputs(opening=opening(self._trace, op))
            case "init" | "fit":
                return Inputs(opening=self._geometry(op))
        rows = self._rows(op) if op["op"] in TAKES_ROWS else None
        if op["op"] in TAKES_QUERIES:
            logical = masks.from_json(list(argument(op, "through"))) if op["op"] == "attend" else None
            return Inputs(rows, self._queries(op), logical)
        return NOTHING if rows is None else Inputs(rows)

    def opened_as(self, op: Operation) -> tuple[str, Config]:
        """Kind and config of the cache an operation is for; those of A where that was never opened."""
        return self.opened.get(cache_of(op), self.opened["A"])

    def _geometry(self, op: Operation) -> tuple[str, Config]:
        kind, config = self.opened_as(op)
        return kind, overridden(config, op, *FIELDS_OF_SOME)

    def _rows(self, op: Operation) -> Pair:
        """Rows in the shape the operation takes: as a cache does, layer upon layer, or token by token."""
        kind, config = self.opened_as(op)
        if op["op"] == "rotate":
            keys, values = self.book.rows(op, config, op["n"])
            return Pair(halved(keys, argument(op, "dims")) if argument(op, "halved") else keys, values)
        if kind == "store" and op["op"] == "append":
            return Pair(*self.book.stacked(op, config, op["n"], self._layers(op)))
        if kind == "bucket":
            layers = (config.layers or 1) if op.get("layers") is None else op["layers"]
            made = self.book.stacked(op, config, op.get("n", 1), layers)
            return Pair(*(a.reshape(layers, a.shape[0] // max(1, layers), *a.shape[1:]) for a in made))
        if op["op"] == "replayattend":
            return Pair(*self.book.rows(op, config, 1))
        if op["op"] in ("step", "replay"):
            layers, m = config.layers or 1, self._sequences(op)
            made = self.book.stacked(op, config, 1, layers * m)
            return Pair(*(a.reshape(layers, a.shape[0] // layers * a.shape[2], *a.shape[1::2]) for a in made))
        if op["op"] == "copy":
            rows = op["n"] if op.get("rows") is None else op["rows"]
            made = self.book.rows({**op, "batch": 1}, config, rows)
            return Pair(*(np.ascontiguousarray(a[0].transpose(1, 0, 2)) for a in made))
        return Pair(*self.book.rows(op, config, op["n"]))

    def _queries(self, op: Operation) -> Array:
        """Queries `[B, heads, n, k_dim]`; of a bucketed cache `[layers, B, heads, n, k_dim]`."""
        kind, config = self.opened_as(op)
        how = {**self.captured[op["name"]], **op} if op.get("name") in self.captured else op
        rows = next((op[name] for name in ("q_rows", "n") if op.get(name) is not None), 1)
        batch = self._sequences(op) if op["op"] == "attendbatch" else config.batch
        own = ("q_batch", batch), ("q_dim", config.k_dim)
        batch, dim = (size if op.get(name) is None else op[name] for name, size in own)
        layers = (config.layers or 1) if kind == "bucket" else 1
        size = layers * batch, how.get("heads", config.kv_heads), rows, dim
        made = cast(queries(argument(op, "queries"), self.book.next, *size), op.get("q_dtype") or "f32")
        return made.reshape(layers, batch, *made.shape[1:]) if kind == "bucket" else made

    def _layers(self, op: Operation) -> int:
        """Layers a store's append writes to."""
        return 1 if op.get("layer") is not None else self.opened_as(op)[1].layers or 1

    def _sequences(self, op: Operation) -> int:
        return self.batches.get(cache_of(op), 1)

    def done(self, op: Operation, result: str) -> None:
        """The oracle's verdict is known: rows that were taken use up their serials, caches opened are there."""
        if result != "ok":
            return
        name = cache_of(op)
        match op["op"]:
            case "open":
                self.opened[name] = opening(self._trace, op)
                self.batches.pop(name, None)
            case "init":
                self.opened[name] = self._geometry(op)
            case "batch":
                self.batches[name] = op["m"]
            case "append" | "draft" | "copy" | "attend" | "rotate":
                self._turned(op)
                self.book.took(op["n"] * (self._layers(op) if self.opened_as(op)[0] == "store" else 1))
            case "prefill" | "encode" | "decode" | "block":
                self.book.took(op.get("n", 1) * (self.opened_as(op)[1].layers or 1))
            case "replayattend":
                self.book.took(1)
            case "captureattend":
                self.captured[op["name"]] = op
            case "step" | "replay":
                self.book.took((self.opened_as(op)[1].layers or 1) * self._sequences(op))

    def _turned(self, op: Operation) -> None:
        """Rows whose keys are not stored as they were made."""
        if op.get("rope") is not None:
            self.book.by_value |= set(range(self.book.next, self.book.next + op["n"]))


def halved(rows: Array, dims: int | None) -> Array:
    """The first `dims` elements of rows, those of even number first, then those of odd number; then the others."""
    end = rows.shape[-1] if dims is None else max(0, dims)
    parts = rows[..., 0:end:2], rows[..., 1:end:2], rows[..., end:]
    return np.concatenate(parts, axis=-1)
