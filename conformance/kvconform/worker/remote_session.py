"""A session in a worker: like `kvspec.session.driver.Session`, for an adapter in another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from kvconform.worker.client import Worker, WorkerFailure
from kvspec import masks
from kvspec.geometry import FIELDS, Config
from kvspec.operations.table import Operation, cache_of, each_of, last_of
from kvspec.registry import CACHES, OBSERVABLES, TENSORS, opened
from kvspec.session.step import NOTHING, EachInputs, Inputs, Step
from kvspec.wire import framing, messages


class RemoteSession:
    """Performs the operations of one trace in the worker. After a failure, the rest of the trace is absent."""

    def __init__(self, worker: Worker, observe: Sequence[str] = OBSERVABLES) -> None:
        self.worker = worker
        self._observe = list(observe)
        self._lost = True
        self._kinds: dict[str, frozenset[str]] = {}
        """The kinds that each cache of the trace was opened as, by its letter: an opening may be refused."""

    def begin(self, kind: str, config: Config) -> Step:
        """Drop everything and open cache A."""
        return self.begin_later(kind, config)()

    def begin_later(self, kind: str, config: Config) -> Callable[[], Step]:
        """Ask for it now and return a function that waits for it: operations may be asked for meanwhile. They find
        no cache A where it cannot be opened."""
        self._lost = False
        self._kinds = {"A": frozenset([kind])}
        opening = {"kind": kind, "config": config.to_json()}
        return self._sent({"op": "begin", **opening, "observe": self._observe})

    def do(self, op: Operation, inputs: Inputs = NOTHING) -> Step:
        """Perform one operation."""
        return self.later(op, inputs)()

    def later(self, op: Operation, inputs: Inputs = NOTHING) -> Callable[[], Step]:
        """Ask for one operation now and return a function that waits for it, so that worker and oracle work in
        parallel."""
        if self._lost:
            return lambda: Step("absent")
        head, tensors = self._question(op, inputs) if inputs.each is None else self._run(op, inputs.each)
        return self._sent(head, tensors, last_of(op))

    def _question(self, op: Operation, inputs: Inputs) -> tuple[Operation, framing.Tensors]:
        """The header and the tensors of one operation."""
        if op["op"] == "mask":
            parts = masks.from_json(op["parts"]) if inputs.logical is None else inputs.logical
            return messages.with_mask(op, parts)
        if inputs.opening is not None:
            kind, config = inputs.opening
            if op["op"] == "open":
                self._kinds[cache_of(op)] = self._kinds.get(cache_of(op), frozenset()) | {kind}
            kept = {k: v for k, v in op.items() if k not in FIELDS}
            return kept | {"kind": kind, "config": config.to_json()}, framing.Tensors()
        head, tensors = op, framing.Tensors()
        if inputs.logical is not None:
            head, tensors = messages.with_mask(op, inputs.logical, "through")
        if inputs.queries is not None:
            tensors["queries"] = inputs.queries
        if inputs.rows is not None:
            tensors |= {"keys": inputs.rows.keys, "values": inputs.rows.values}
        return head, tensors

    def _run(self, op: Operation, each: EachInputs) -> tuple[Operation, framing.Tensors]:
        """The header and the tensors of a run. Where its operations take other shapes each time, it is done once
        with all of them."""
        return messages.run(op["times"], [self._question(part, each.make(part)) for part in each_of(op)])

    def _sent(
        self, head: dict[str, Any], tensors: framing.Tensors | None = None, seen: Operation | None = None
    ) -> Callable[[], Step]:
        """Send a question. `seen` is the operation that its answer observes, if that is not the question's own."""
        try:
            self.worker.send(head, tensors)
        except WorkerFailure as e:
            step = self._failed(e)
            return lambda: step
        op = seen or head
        return partial(self._received, op["op"], self._kinds.get(cache_of(op), frozenset()))

    def _received(self, operation: str, kinds: frozenset[str]) -> Step:
        if self._lost:
            return Step("absent")
        try:
            return self._step(operation, kinds, *self.worker.receive())
        except WorkerFailure as e:
            return self._failed(e)

    def _failed(self, e: WorkerFailure) -> Step:
        self._lost = True
        return Step(e.verdict.lower(), message=str(e))

    def _step(self, operation: str, kinds: frozenset[str], answer: dict[str, Any], arrays: framing.Tensors) -> Step:
        try:
            step = messages.step(answer, arrays)
            wrong = foreign(operation, kinds, tuple(arrays))
        except framing.ProtocolError as e:
            wrong = str(e)
        if wrong:
            raise self.worker.broken(wrong)
        return step


@lru_cache(maxsize=4096)
def foreign(operation: str, kinds: frozenset[str], names: tuple[str, ...]) -> str:
    """Say which of these tensors the answer to an operation on a cache of one of these kinds cannot hold; empty if
    it can hold all."""
    odd = next((name for name in names if not _can_hold(operation, kinds, name)), None)
    return "" if odd is None else f"the answer to {operation} on a {'/'.join(kinds)} cache cannot hold {odd}"


def _can_hold(operation: str, kinds: frozenset[str], name: str) -> bool:
    what, *which = name.removesuffix(".k").removesuffix(".v").split(".")
    if kinds <= set(CACHES) and any(map(str.isdigit, which)):
        return False  # a cache of one sequence shows no layers or sequences by number
    tensor = TENSORS[what]
    return tensor.always or operation in tensor.after or any(what in opened(kind).answers for kind in kinds)
