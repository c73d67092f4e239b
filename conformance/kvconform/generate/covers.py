"""Covers: traces that try every operation from every state of the reference, for a small configuration.

`closure` visits the states breadth first, so each path it notes is a shortest one. A cover follows each transition
with continuations, appends that reveal hidden state: a ring index lost on a restore is invisible until the next
append.

The claim: an adapter that agrees with the reference on a cover agrees on every trace of that configuration and
alphabet. It holds if the adapter has no more states than the reference, and if its behaviour depends neither on
the data nor on the absolute position.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvconform.generate.strategies.plan_moves import Ops, Plan
from kvconform.oracle.reference import CitingReference
from kvconform.oracle.trace_inputs import TraceInputs
from kvspec.session.driver import Session
from kvspec.session.step import Step
from kvspec.trace import Trace

if TYPE_CHECKING:
    from kvconform.oracle.abstract_state import Key


@dataclass(frozen=True)
class Closure:
    """All states, each with a shortest path to it, and its moves: those to another state and those that stay."""

    states: dict[Key, Ops]
    leaving: list[tuple[Ops, Ops]]
    staying: list[tuple[Ops, Ops]]

    @property
    def transitions(self) -> int:
        """Count the moves from all states."""
        return len(self.leaving) + len(self.staying)


@dataclass
class Walk:
    """A trace replayed on the reference, so that its state can be inspected."""

    session: Session
    trace_inputs: TraceInputs
    steps: list[Step]


FROZEN = ("state", "positions", "history", "mask", "sees", "fold", "offset", "free", "can")
"""The observers used here; bytes held and counted follow from these and have chapters of their own."""


def walk(start: Trace, ops: Ops) -> Walk:
    """Replay operations on a fresh reference."""
    reference, trace_inputs = CitingReference(observe=FROZEN), TraceInputs(start)
    reference.begin(start.kind, start.config)
    steps = []
    for op in ops:
        inputs = trace_inputs.make(op)
        steps.append(reference.do(op, inputs))
        trace_inputs.done(op, steps[-1].result)
    return Walk(reference, trace_inputs, steps)


def closure(plan: Plan, largest: int = 100_000) -> Closure:
    """Visit every state. Raises RuntimeError for more than `largest` states."""
    closed = Closure({key_of(plan, walk(plan.start, ())): ()}, [], [])
    todo = deque(closed.states.items())
    while todo:
        here, path = todo.popleft()
        for move in plan.moves(walk(plan.start, path).session):
            reached = key_of(plan, walk(plan.start, path + move))
            (closed.staying if reached == here else closed.leaving).append((path, move))
            if reached not in closed.states:
                closed.states[reached] = path + move
                todo.append((reached, path + move))
        if len(closed.states) > largest:
            raise RuntimeError(f"{plan.name}: more than {largest} states; the alphabet does not close")
    return closed


def key_of(plan: Plan, w: Walk) -> Key:
    """Give the state in which a walk ends."""
    from kvconform.oracle.abstract_state import key  # it reads all kinds, and frozen covers visit no states

    queries = w.session.caches["A"].queries if plan.histories else None
    return *key(w.session, w.trace_inputs.book, plan.snapshots, plan.caches), queries
