"""A session on one of the oracles, whose steps say which clauses they exercised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvref.cite import cite, cited
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


class CitingSession(Session):
    """Notes with each step the clauses that were cited meanwhile."""

    def __init__(self, adapter: Any, observe: Sequence[str] = OBSERVABLES) -> None:
        super().__init__(adapter, observe)
        self._attended: set[str] = set()

    def do(self, op: Operation, inputs: Inputs = NOTHING) -> Step:
        """Perform one operation and note the clauses."""
        cited()
        step, name = super().do(op, inputs), cache_of(op)
        if step.result == "ok":
            self._attended |= {name} if op["op"] in TAKES_QUERIES else set()
            cite_operation(op, self.kinds[name], self._batched(name), name in self._attended)
        step.cites = refused(op, step.clause) if step.result == "refused" else cited()
        return step

    def _batched(self, name: str) -> bool:
        """Whether there is a batch beside what the operation was for."""
        return self.kinds[name] == "store" and self.caches[name].sequences() is not None
