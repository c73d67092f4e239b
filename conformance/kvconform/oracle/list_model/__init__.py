"""The list model, driven like a session: a module for each chapter, as in `kvspec.session.operations`.

`DO` maps operations to functions of the lists, the model of the cache the operation is for, the operation, the
step it makes, and what was given with it; `LOOK` maps kinds to what is expected after every operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvconform.oracle.list_model import (
    attention,
    batch,
    bucket,
    cache,
    copy,
    draft,
    mem,
    page,
    rope,
    snapshot,
    store,
)
from kvconform.oracle.list_model.expected import Expected
from kvconform.oracle.reference import cite_operation, refused
from kvconform.oracle.trace_inputs import TraceInputs
from kvref.cite import cited
from kvspec.contract import Description
from kvspec.errors import Refused, Unsupported
from kvspec.geometry import Array
from kvspec.operations.table import NAMED, OPERATIONS, TAKES_QUERIES, Operation, cache_of, names_used
from kvspec.session.operations.draft import WHOLE
from kvspec.session.step import Inputs

Do = Callable[..., None]

DO: dict[str, Do] = cache.DO | snapshot.DO | draft.DO | copy.DO | store.DO | batch.DO | mem.DO
DO |= attention.DO | page.DO
DO |= rope.DO
DO |= bucket.DO
MODELS: dict[str, Callable[..., Any]] = {**cache.MODELS, **copy.MODELS, **store.MODELS, **page.MODELS}
MODELS |= bucket.MODELS
LOOK: dict[str, Callable[..., None]] = {**cache.LOOK, **copy.LOOK, **store.LOOK, **page.LOOK}
LOOK |= bucket.LOOK
APPEND: dict[str, Do] = {**cache.APPEND, **store.APPEND, **page.APPEND}
BY_KIND: dict[str, dict[str, Do]] = {"append": APPEND, "attend": attention.ATTEND | page.ATTEND}
"""Operations that are done otherwise on one kind than on another."""


class Lists:
    """The list model of a whole trace. `description` holds the adapter's declared limits."""

    def __init__(self, description: Description, trace_inputs: TraceInputs) -> None:
        self.description, self.trace_inputs = description, trace_inputs
        self.caches: dict[str, Any] = {}
        self.names: dict[str, dict[str, Any]] = {kind: {} for kind in NAMED}
        self._attended: set[str] = set()
        self.astray: dict[int, Array] = {}
        """How far the keys of serials that were turned by RoPE may be from those kept."""

    @property
    def saved(self) -> dict[str, Any]:
        """Snapshots by name."""
        return self.names["snapshot"]

    @property
    def rounds(self) -> dict[str, Any]:
        """Rounds of speculation by name."""
        return self.names["round"]

    def do(self, op: Operation, given: Inputs) -> Expected:
        """Perform one operation."""
        cited()
        step, name = Expected(), cache_of(op)
        try:
            if op["op"] == "open":
                assert given.opening is not None
                kind, config = given.opening
                self.caches[name] = MODELS[kind](kind, config, self.description.chapters[kind])
            elif name not in self.caches or not self._named(op):
                return Expected("absent")
            else:
                model = self.caches[name]
                draft.guard(model, op, step)
                do = BY_KIND.get(op["op"], {}).get(model.kind) or DO[op["op"]]
                do(self, model, op, step, given)
        except Refused as e:
            step.result, step.clause, step.message = "refused", e.clause, str(e)
        except Unsupported as e:
            step.result, step.message = "unsupported", str(e)
        if name in self.caches:
            self._look(op, step)
        step.cites = refused(op, step.clause) if step.result == "refused" else cited()
        return step

    def _look(self, op: Operation, step: Expected) -> None:
        model = self.caches[cache_of(op)]
        if step.result == "ok":
            self._attended |= {cache_of(op)} if op["op"] in TAKES_QUERIES else set()
            batched = getattr(model, "batch", None) is not None
            cite_operation(op, model.kind, batched, cache_of(op) in self._attended)
        if op["op"] in WHOLE:
            draft.look(self, op, step)
        else:
            LOOK[model.kind](self, model, step)

    def _named(self, op: Operation) -> bool:
        there = self.names.get(OPERATIONS[op["op"]].names, {})
        layers = set(op.get("layers", "")) - {"-"} if op["op"] == "speculate" else set[str]()
        return all(name in there for name in names_used(op)) and layers <= set(self.caches)


__all__ = ["Expected", "Lists"]
