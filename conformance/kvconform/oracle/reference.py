"""The oracle at level `storage`: the reference, whose steps say which clauses they exercised."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from kvadapters.reference import Reference
from kvref.cite import cite, cited
from kvspec import masks
from kvspec.contract import Pair
from kvspec.geometry import Config
from kvspec.operations.table import (
    CHAPTER_OF,
    TAKES_QUERIES,
    TAKES_ROWS,
    Operation,
    argument,
    cache_of,
    chapters_of,
)
from kvspec.registry import OBSERVABLES
from kvspec.session.driver import Session
from kvspec.session.step import NOTHING, Inputs, Step


class Performs(Protocol):
    """A session, here or in a worker."""

    def begin(self, kind: str, config: Config) -> Step:
        """Open cache A, and forget all that was."""

    def do(self, op: Operation, inputs: Inputs = NOTHING) -> Step:
        """Perform one operation."""


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
    return (clause, "ATTN-23") if CHAPTER_OF.get(op["op"]) == "attention" else (clause,)


def cite_operation(op: Operation, kind: str, batched: bool = False, attended: bool = False) -> None:
    """Clauses that an operation exercises whatever the cache does: on the caller's arrays, on bits, on repeats."""
    if op["op"] == "scribble" and attended:
        cite("ATTN-15")
    if op["op"] == "scribble" and kind in OWNERSHIP:
        cite(OWNERSHIP[kind])
    if op["op"] == "mask":
        cite("MASK-15")
    takes = TAKES_ROWS if kind == "bucket" else ("append",)
    if op["op"] in takes and argument(op, "fill") == "bits" and kind in BITS:
        cite(BITS[kind])
    if op["op"] == "rotate" and op.get("by") is not None:
        cite("ROPE-14")
    if "batch" in chapters_of(op):
        cite(WITHIN)
    elif batched:
        cite(BESIDE)


class CitingReference:
    """A session on the reference whose steps say which clauses they exercised."""

    def __init__(self, adapter: Any = None, observe: tuple[str, ...] = OBSERVABLES) -> None:
        self._session = Session(adapter or Reference(), observe)
        self._kinds: dict[str, str] = {}
        self._attended: set[str] = set()

    @property
    def session(self) -> Session:
        """The session underneath, for those who look into the reference's state."""
        return self._session

    def begin(self, kind: str, config: Config) -> Step:
        """Open cache A."""
        return self.do({"op": "open"}, Inputs(opening=(kind, config)))

    def do(self, op: Operation, inputs: Inputs = NOTHING) -> Step:
        """Perform one operation and note the clauses."""
        cited()
        # its own copies: the reference's session scribbles on what it was handed, as any caller may
        own = None if inputs.rows is None else Pair(inputs.rows.keys.copy(), inputs.rows.values.copy())
        asked = None if inputs.queries is None else inputs.queries.copy()
        step = self._session.do(op, replace(inputs, rows=own, queries=asked, logical=_copied(inputs.logical)))
        if step.result == "ok" and op["op"] == "open" and inputs.opening is not None:
            self._kinds[cache_of(op)] = inputs.opening[0]
        if step.result == "ok":
            self._attended |= {cache_of(op)} if op["op"] in TAKES_QUERIES else set()
            cite_operation(op, self._kinds[cache_of(op)], self._batched(op), cache_of(op) in self._attended)
        step.cites = refused(op, step.clause) if step.result == "refused" else cited()
        return step

    def _batched(self, op: Operation) -> bool:
        """Whether there is a batch beside what the operation was for."""
        store = self._kinds[cache_of(op)] == "store"
        return store and self._session.caches[cache_of(op)].sequences() is not None
