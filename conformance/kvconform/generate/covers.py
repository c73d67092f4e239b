"""Covers: traces that try every operation from every state of the reference, for a small configuration.

`closure` visits the states breadth first, so each path it notes is a shortest one. A cover follows each transition
with continuations, appends that reveal hidden state (a ring index lost on a restore is invisible until the next
append). Whether the continuations distinguish all states is computed, not assumed, and is recorded in the frozen
cover.

The claim: if an adapter agrees with the reference on a cover, it agrees on every trace of that configuration
and alphabet, provided its behaviour depends neither on the data nor on the absolute position, and it has no
more states than the reference.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kvconform.oracle.abstract_state import Key, key
from kvconform.oracle.reference import CitingReference
from kvconform.oracle.trace_inputs import TraceInputs
from kvspec.operations.table import Operation
from kvspec.session.driver import Session
from kvspec.session.step import Step
from kvspec.trace import Trace

Ops = tuple[Operation, ...]


@dataclass(frozen=True)
class Plan:
    """What to cover: a configuration, the moves tried from each state, and what follows each move."""

    name: str
    start: Trace
    moves: Callable[[Session], Sequence[Ops]]
    continuations: Callable[[Session], Sequence[Ops]]
    snapshots: tuple[str, ...] = ()
    """Names of snapshots that belong to the state."""
    caches: tuple[str, ...] = ("A",)
    """The caches that belong to the state."""
    histories: bool = False
    """Whether the last append's number of queries belongs to the state, as it does for masks."""
    look: Ops = ({"op": "view"},)
    """Operations that show a state and do not change it."""


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


FROZEN = ("state", "history", "mask")
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
    queries = w.session.caches["A"].queries if plan.histories else None
    return *key(w.session, w.trace_inputs.book, plan.snapshots, plan.caches), queries


def traces(plan: Plan, closed: Closure) -> Iterator[Ops]:
    """Build the cover: each transition followed by each continuation, shortest first.

    Moves that stay in their state (refusals, views) share one trace.
    """
    found = dict[str, Ops]()
    for path, move in [*closed.leaving, *_chained(closed.staying)]:
        for continuation in plan.continuations(walk(plan.start, path + move).session):
            whole = path + move + continuation
            found.setdefault(repr(whole), whole)
    yield from sorted(found.values(), key=len)


def _chained(staying: list[tuple[Ops, Ops]]) -> list[tuple[Ops, Ops]]:
    """Join all staying moves of a state into one move."""
    by_path = dict[str, tuple[Ops, Ops]]()
    for path, move in staying:
        _, moves = by_path.get(repr(path), ((), ()))
        by_path[repr(path)] = (path, moves + move)
    return list(by_path.values())


def told_apart(plan: Plan, closed: Closure) -> bool:
    """Whether the observations in each state, and after its continuations, differ from those of every other state.

    A frozen cover records this. A proof needs a stricter test: see `kvconform.prove.identifiers`.
    """
    seen = set[str]()
    for path in closed.states.values():
        steps: list[str] = []
        for continuation in [plan.look, *plan.continuations(walk(plan.start, path).session)]:
            w = walk(plan.start, path + continuation)
            numbers: dict[int, int] = {}
            steps += [_renamed(s, w, numbers) for s in w.steps[max(0, len(path) - 1) :]]
        seen.add(repr(steps))
    return len(seen) == len(closed.states)


def _renamed(step: Step, w: Walk, numbers: dict[int, int]) -> str:
    """Normalise observations: rows are numbered as they appear, positions past a window count from its end."""
    values = {n: v - _base(w, n) if n.startswith(("offset", "drafted")) else v for n, v in step.values.items()}
    answered = {name: bool(a.any()) for name, a in step.arrays.items() if name == "output" and a is not None}
    return repr((step.result, step.clause, values, numbered_rows(step, w, numbers), answered))


def numbered_rows(step: Step, w: Walk, numbers: dict[int, int]) -> dict[str, list[int]]:
    """Number the rows of a step's arrays by their first appearance; a negative serial (no row) stays as it is."""
    rows = {name: a for name, a in step.arrays.items() if a is not None and name.endswith((".k", ".v"))}
    serials = {name: w.trace_inputs.book.read(a, name[-1])[0, 0].tolist() for name, a in rows.items()}
    return {n: [s if s < 0 else numbers.setdefault(s, len(numbers)) for s in each] for n, each in serials.items()}


def _base(w: Walk, value: str) -> int:
    """Give the first position that matters to the cache of a value: B for `offset.B`, else A."""
    cache = w.session.caches[value.partition(".")[2] or "A"]
    return max(0, cache.offset - cache.window - 1) if hasattr(cache, "window") else 0


def digest(start: Trace, ops: Ops) -> str:
    """Hash everything the reference does on a trace into eight digits."""
    sha = hashlib.sha256()
    for step in walk(start, ops).steps:
        sha.update(repr((step.result, step.clause, sorted(step.values.items()))).encode())
        for name, a in sorted(step.arrays.items()):
            sha.update(name.encode() + (b"none" if a is None else repr((a.dtype, a.shape)).encode() + a.tobytes()))
    return sha.hexdigest()[:8]
