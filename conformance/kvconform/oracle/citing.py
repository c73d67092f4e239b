"""A session on one of the oracles. Its steps say which clauses they exercised."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from kvconform.oracle.exercised_by_past import Earlier
from kvref.cite import cite, cited
from kvref.list_model.unsaid import Unsaid
from kvspec.geometry import Config
from kvspec.operations.table import (
    CHAPTER_OF,
    OPEN,
    RUN,
    TAKES_QUERIES,
    TAKES_ROWS,
    Operation,
    cache_of,
    chapters_of,
)
from kvspec.registry import LETTERS, OBSERVABLES, RECORDS, opened
from kvspec.session.driver import Session
from kvspec.session.step import NOTHING, Inputs, Step

BESIDE, WITHIN = "BATCH-21", "BATCH-22"
"""What operations on a store owe its batch, and those on the batch the store."""


def refused(op: Operation, clause: str, kind: str | None) -> tuple[str, ...]:
    """The clauses that a refusal exercises: its own, but no other that was cited on the way to it. Beside it
    counts the clause that nothing was done, which attends and some kinds of cache have."""
    if CHAPTER_OF.get(op["op"]) == LETTERS["ATTN"]:
        return clause, "ATTN-23"
    nothing_done = opened(kind).unchanged.get(op["op"]) if kind else None
    return (clause, nothing_done) if nothing_done else (clause,)


EDGES = ("bits", "edges")
"""Fills that hold NaN, infinities, and numbers so large that sums of them overflow."""


def cite_operation(op: Operation, kind: str, batched: bool = False, attended: bool = False) -> None:
    """Clauses that an operation exercises whatever the cache does: on the caller's arrays, on bits, on repeats."""
    if op["op"] == "scribble" and attended:
        cite("ATTN-15")
    if op["op"] == "scribble" and opened(kind).ownership:
        cite(opened(kind).ownership)
    if op["op"] == "mask":
        cite("MASK-15")
    own = op["op"] == "append" or CHAPTER_OF.get(op["op"]) == kind
    if own and op["op"] in TAKES_ROWS and op.get("fill") == "bits" and opened(kind).bits:
        cite(opened(kind).bits)
    if op["op"] == "rotate" and op.get("by") is not None:
        cite("ROPE-14", *(("ROPE-40",) if op.get("scaling", "none") != "none" else ()))
    if LETTERS["BATCH"] in chapters_of(op):
        cite(WITHIN)
    elif batched:
        cite(BESIDE)


def _windowed(config: Config) -> bool:
    """Whether rows may be written over that lie before those that are appended."""
    return config.window is not None or config.of is not None


class CitingSession(Session):
    """Notes with each step the clauses that were cited meanwhile."""

    def __init__(self, adapter: Any, observe: Sequence[str] = OBSERVABLES) -> None:
        super().__init__(adapter, observe)
        self._earlier = Earlier()
        self._attended: set[str] = set()
        self._edged: set[str] = set()
        """Caches that were given rows of edge values since they were opened."""

    def do(self, op: Operation, inputs: Inputs = NOTHING) -> Step:
        """Perform one operation and note the clauses."""
        if op["op"] == RUN.name:
            return super().do(op, inputs)
        cited()
        name, before = cache_of(op), self._offset(cache_of(op))
        step, without = super().do(op, inputs), self._earlier.not_exercised(op, name)
        if step.result == "ok":
            self._note_edges(op, name)
            self._earlier.note(op, name, before, _windowed(self.configs[name]))
            if op["op"] in TAKES_QUERIES:
                self._attended.add(name)
                cite(*(["ATTN-46"] if name in self._edged else []))
            cite_operation(op, self.kinds[name], self._batched(name), name in self._attended)
        found = refused(op, step.clause, self.kinds.get(name)) if step.result == "refused" else cited()
        step.cites = tuple(clause for clause in found if clause not in without)
        return step

    def _offset(self, name: str) -> int | None:
        """Where a cache stands, or None for one that has no such length, or of which nothing is said."""
        with suppress(Unsaid):
            return getattr(self.caches.get(name), "offset", None)
        return None

    def _note_edges(self, op: Operation, name: str) -> None:
        if op["op"] == OPEN.name:
            self._edged.discard(name)
        if op["op"] in TAKES_ROWS and op.get("fill") in EDGES:
            self._edged.add(name)

    def _batched(self, name: str) -> bool:
        """Whether there is a batch beside what the operation was for."""
        return self.kinds[name] in RECORDS[LETTERS["BATCH"]].on and self.caches[name].sequences() is not None
