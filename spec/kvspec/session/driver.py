"""Performs the operations of a trace on an adapter's caches, and notes what was observed.

The same code drives the reference in the harness and a Python adapter in its worker process. What each
operation does is in `kvspec.session.operations`.
"""

from __future__ import annotations

import traceback
from typing import ClassVar

from kvspec.contract import description
from kvspec.errors import NotWhole, Refused, Unsupported
from kvspec.geometry import Config
from kvspec.operations.table import (
    ON_ROUNDS,
    OPERATIONS,
    RUN,
    Operation,
    cache_of,
    caches_named,
    each_of,
    names_used,
)
from kvspec.registry import opened
from kvspec.session.arrays import Lent
from kvspec.session.operations import draft, growing, observes, performs
from kvspec.session.state import SessionState
from kvspec.session.step import NOTHING, Inputs, Step


class Session(SessionState):
    """Performs the operations of one trace: `begin` opens cache A, `do` performs one operation."""

    step_type: ClassVar[type[Step]] = Step
    """What a step is noted as."""

    def begin(self, kind: str, config: Config) -> Step:
        """Open cache A."""
        return self.do({"op": "open", "cache": "A"}, Inputs(opening=(kind, config)))

    def do(self, op: Operation, inputs: Inputs = NOTHING) -> Step:
        """Perform one operation."""
        if op["op"] == RUN.name:
            return self._run(op, inputs)
        step = self.step_type()
        self._now = name = cache_of(op)
        try:
            self.demand(op, inputs)
            if op["op"] == "open":
                self._open(name, inputs)
            elif name not in self.caches or not self._named(op):
                return self.step_type("absent")
            else:
                performs(op["op"])(self, self.caches[name], op, step, inputs)
        except (Refused, Unsupported) as e:
            step.result = "refused" if isinstance(e, Refused) else "unsupported"
            step.clause, step.message = getattr(e, "clause", ""), str(e)
        except NotWhole:
            raise
        except Exception as e:
            self.failed(step, e)
        self._look(op, step)
        return step

    def demand(self, op: Operation, inputs: Inputs) -> None:
        """Raise Unsupported for an operation that is not to reach the adapter; here each one may."""

    def _run(self, op: Operation, inputs: Inputs) -> Step:
        """Perform the operations of a run and give the step of the last, which alone is observed. After each of the
        others the caller's arrays are overwritten."""
        assert inputs.each is not None
        observe, missed, cites = self.observe, dict[int, str](), dict[str, None]()
        each = each_of(op)
        self.observe, self.unseen = frozenset(), True
        try:
            for number, part in enumerate(each[:-1]):
                step = self.do(part, inputs.each.make(part))
                self._take_back(cache_of(part))
                if self._missed(step, number):
                    missed[number] = step.clause
                cites.update(dict.fromkeys(step.cites))
                inputs.each.done(part, step.result)
        finally:
            self.observe, self.unseen = observe, False
        step = self.do(each[-1], inputs.each.make(each[-1]))
        inputs.each.done(each[-1], step.result)
        step.values["failed"], step.missed = [*missed], missed
        step.cites = tuple(cites | dict.fromkeys(step.cites))
        return step

    def _missed(self, step: Step, number: int) -> bool:
        """Tell whether an operation of a run, this one, was not done."""
        return step.result != "ok"

    def _take_back(self, name: str) -> None:
        """Overwrite what was handed in and out, where it is the caller's."""
        if name in self.kinds and self._leaves_arrays(self.kinds[name]):
            growing.overwrite(self.lent[name])

    def _leaves_arrays(self, kind: str) -> bool:
        """Tell whether arrays are the caller's. An engine that returns what it keeps does not claim `scribble`."""
        if kind not in self._left_to_caller:
            says = getattr(self.adapter, "describe", None)  # the list model has no arrays, and says nothing
            self._said = self._said or (description(says()) if says else None)
            claim = self._said.chapters.get(kind) if self._said else None
            claimed = claim is not None and "scribble" not in claim.without
            self._left_to_caller[kind] = claimed and bool(opened(kind).ownership)
        return self._left_to_caller[kind]

    def _open(self, name: str, inputs: Inputs) -> None:
        assert inputs.opening is not None
        self.caches[name] = self.adapter.open(*inputs.opening)
        self.kinds[name], self.configs[name] = inputs.opening
        self.lent[name] = Lent()

    def _named(self, op: Operation) -> bool:
        """Tell whether everything that an operation names is there."""
        if not caches_named(op) <= set(self.caches):
            return False
        there = self.names.get(OPERATIONS[op["op"]].names, {})
        return all(name in there for name in names_used(op))

    def _look(self, op: Operation, step: Step) -> None:
        if self.unseen or (name := cache_of(op)) not in self.caches:
            return
        try:
            self.wait()
            if op["op"] in ON_ROUNDS:
                draft.look_at_round(self, op, step)
            else:
                observes(self.kinds[name])(self, self.caches[name], step)
        except NotWhole:
            raise
        except Exception as e:
            self.failed(step, e, "observing the cache: ")

    def failed(self, step: Step, e: Exception, when: str = "") -> None:
        """Note that something was raised which the contract does not know."""
        step.result, step.message = "error", f"{when}{_what(e)}"


def _what(e: Exception) -> str:
    """One line: the exception and the place in the adapter where it was raised."""
    last = traceback.extract_tb(e.__traceback__)[-1]
    return f"{type(e).__name__}: {' '.join(str(e).split())} ({last.filename.rpartition('/')[2]}:{last.lineno})"
