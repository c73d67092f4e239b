"""What a trace needs when it is replayed: rows, masks and configs; and the oracle at level `storage`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from kvadapters.reference import Reference
from kvref.cite import cite, cited
from kvspec import masks
from kvspec.contract import Pair
from kvspec.geometry import OWN, Array, Config
from kvspec.operations.table import ATTENTION, TAKES_QUERIES, TAKES_ROWS, Operation, argument, cache_of, profiles_of
from kvspec.rows import Book, cast, queries
from kvspec.session.driver import NOTHING, OBSERVABLES, Given, Session, Step
from kvspec.trace import Trace, opening, overridden


class Performs(Protocol):
    """A session, here or in a worker."""

    def begin(self, profile: str, config: Config) -> Step:
        """Open cache A, and forget all that was."""

    def do(self, op: Operation, given: Given = NOTHING) -> Step:
        """Perform one operation."""


class Supplies:
    """Makes what the operations of one trace need; rows get their serials here."""

    def __init__(self, trace: Trace) -> None:
        self.book = Book()
        self.opened = {"A": (trace.profile, trace.config)}
        self.batches: dict[str, int] = {}
        self.captured: dict[str, Operation] = {}
        """The operation that captured each captured attention."""
        self._trace = trace
        if any(op["op"] in TAKES_QUERIES for op in trace.ops):
            self.book.kept = {}

    def give(self, op: Operation) -> Given:
        """What goes with this operation."""
        match op["op"]:
            case "mask":
                return Given(logical=masks.from_json(op["parts"]))
            case "open":
                return Given(opening=opening(self._trace, op))
            case "init" | "fit":
                return Given(opening=self._geometry(op))
        rows = self._rows(op) if op["op"] in TAKES_ROWS else None
        if op["op"] in TAKES_QUERIES:
            logical = masks.from_json(list(argument(op, "through"))) if op["op"] == "attend" else None
            return Given(rows, self._queries(op), logical)
        return NOTHING if rows is None else Given(rows)

    def of(self, op: Operation) -> tuple[str, Config]:
        """Profile and config of the cache an operation is for; those of A where that was never opened."""
        return self.opened.get(cache_of(op), self.opened["A"])

    def _geometry(self, op: Operation) -> tuple[str, Config]:
        profile, config = self.of(op)
        return profile, overridden(config, op, *OWN["store"])

    def _rows(self, op: Operation) -> Pair:
        """Rows in the shape the operation takes: as a cache does, layer upon layer, or token by token."""
        profile, config = self.of(op)
        if op["op"] == "rotate":
            keys, values = self.book.rows(op, config, op["n"])
            return Pair(halved(keys, argument(op, "dims")) if argument(op, "halved") else keys, values)
        if profile == "store" and op["op"] == "append":
            return Pair(*self.book.stacked(op, config, op["n"], self._layers(op)))
        if profile == "bucket":
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
        profile, config = self.of(op)
        how = {**self.captured[op["name"]], **op} if op.get("name") in self.captured else op
        rows = next((op[name] for name in ("q_rows", "n") if op.get(name) is not None), 1)
        batch = self._sequences(op) if op["op"] == "attendbatch" else config.batch
        own = ("q_batch", batch), ("q_dim", config.k_dim)
        batch, dim = (size if op.get(name) is None else op[name] for name, size in own)
        layers = (config.layers or 1) if profile == "bucket" else 1
        size = layers * batch, how.get("heads", config.kv_heads), rows, dim
        made = cast(queries(argument(op, "queries"), self.book.next, *size), op.get("q_dtype") or "f32")
        return made.reshape(layers, batch, *made.shape[1:]) if profile == "bucket" else made

    def _layers(self, op: Operation) -> int:
        """Layers a store's append writes to."""
        return 1 if op.get("layer") is not None else self.of(op)[1].layers or 1

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
                self.book.took(op["n"] * (self._layers(op) if self.of(op)[0] == "store" else 1))
            case "prefill" | "encode" | "decode" | "block":
                self.book.took(op.get("n", 1) * (self.of(op)[1].layers or 1))
            case "replayattend":
                self.book.took(1)
            case "captureattend":
                self.captured[op["name"]] = op
            case "step" | "replay":
                self.book.took((self.of(op)[1].layers or 1) * self._sequences(op))

    def _turned(self, op: Operation) -> None:
        """Rows whose keys are not stored as they were made."""
        if op.get("rope") is not None:
            self.book.by_value |= set(range(self.book.next, self.book.next + op["n"]))


def halved(rows: Array, dims: int | None) -> Array:
    """The first `dims` elements of rows, those of even number first, then those of odd number; then the others."""
    end = rows.shape[-1] if dims is None else max(0, dims)
    parts = rows[..., 0:end:2], rows[..., 1:end:2], rows[..., end:]
    return np.concatenate(parts, axis=-1)


def _copied(logical: masks.Logical | None) -> masks.Logical | None:
    if logical is None:
        return None
    return tuple(masks.Explicit(p.array.copy()) if isinstance(p, masks.Explicit) else p for p in logical)


OWNERSHIP = {"growing": "GROW-13", "ring": "RING-16", "copy": "COPY-10", "store": "STORE-11", "page": "PAGE-38"}
OWNERSHIP |= {"bucket": "BUCKET-28"}
BITS = {"growing": "GROW-12", "ring": "RING-15", "store": "STORE-6", "page": "PAGE-9"}
BITS |= {"bucket": "BUCKET-27"}


BESIDE, WITHIN = "BATCH-21", "BATCH-22"
"""What operations on a store owe its batch, and those on the batch the store."""


def refused(op: Operation, clause: str) -> tuple[str, ...]:
    """The clauses that a refusal exercises: its own, and no other that was cited on the way to it; of an attend the
    one as well that says that nothing of it is done."""
    return (clause, "ATTN-23") if op["op"] in ATTENTION else (clause,)


def cite_operation(op: Operation, profile: str, batched: bool = False, attended: bool = False) -> None:
    """Clauses that an operation exercises whatever the cache does: on the caller's arrays, on bits, on repeats."""
    if op["op"] == "scribble" and attended:
        cite("ATTN-15")
    if op["op"] == "scribble" and profile in OWNERSHIP:
        cite(OWNERSHIP[profile])
    if op["op"] == "mask":
        cite("MASK-15")
    takes = TAKES_ROWS if profile == "bucket" else ("append",)
    if op["op"] in takes and argument(op, "fill") == "bits" and profile in BITS:
        cite(BITS[profile])
    if op["op"] == "rotate" and op.get("by") is not None:
        cite("ROPE-14")
    if "batch" in profiles_of(op):
        cite(WITHIN)
    elif batched:
        cite(BESIDE)


class Cited:
    """A session on the reference whose steps say which clauses they exercised."""

    def __init__(self, adapter: Any = None, observe: tuple[str, ...] = OBSERVABLES) -> None:
        self._session = Session(adapter or Reference(), observe)
        self._profiles: dict[str, str] = {}
        self._attended: set[str] = set()

    @property
    def session(self) -> Session:
        """The session underneath, for those who look into the reference's state."""
        return self._session

    def begin(self, profile: str, config: Config) -> Step:
        """Open cache A."""
        return self.do({"op": "open"}, Given(opening=(profile, config)))

    def do(self, op: Operation, given: Given = NOTHING) -> Step:
        """Perform one operation and note the clauses."""
        cited()
        # its own copies: the reference's session scribbles on what it was handed, as any caller may
        own = None if given.rows is None else Pair(given.rows.keys.copy(), given.rows.values.copy())
        asked = None if given.queries is None else given.queries.copy()
        step = self._session.do(op, replace(given, rows=own, queries=asked, logical=_copied(given.logical)))
        if step.result == "ok" and op["op"] == "open" and given.opening is not None:
            self._profiles[cache_of(op)] = given.opening[0]
        if step.result == "ok":
            self._attended |= {cache_of(op)} if op["op"] in TAKES_QUERIES else set()
            cite_operation(op, self._profiles[cache_of(op)], self._batched(op), cache_of(op) in self._attended)
        step.cites = refused(op, step.clause) if step.result == "refused" else cited()
        return step

    def _batched(self, op: Operation) -> bool:
        """Whether there is a batch beside what the operation was for."""
        store = self._profiles[cache_of(op)] == "store"
        return store and self._session.caches[cache_of(op)].sequences() is not None
