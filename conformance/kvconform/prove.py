"""Exhaustive in the small: all states of the reference for small configurations, and an adapter tried from each.

The tests are those of Chow's W-method (Chow 1978; Vasilevskii 1973): a state cover, by shortest paths; behind it
every sequence of up to k + 1 moves; behind that the continuations, which tell all states apart (whether they do is
computed by `kvconform.cover.told_apart`, and said). An adapter that passes them all agrees with the oracle on every
trace of that alphabet, if its behaviour depends neither on the data of rows nor on the absolute position, and if it
has at most k states more than the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from kvconform import cover
from kvconform.cover import Closure, Ops, Plan
from kvconform.trial import Outcome
from kvspec.trace import LARGEST_TRACE, Trace

Runs = Callable[[Trace], Outcome]
"""Judges one trace."""

Tells = Callable[[str], None]
"""Says how far it came."""


@dataclass
class Proof:
    """What was done for one configuration, and the first counterexample if there was one."""

    plan: Plan
    k: int
    states: int = 0
    transitions: int = 0
    told_apart: bool = False
    traces: int = 0
    operations: int = 0
    counterexample: Outcome | None = field(default=None, repr=False)

    @property
    def holds(self) -> bool:
        """Whether the claim follows."""
        return self.counterexample is None and self.told_apart


def proved(plan: Plan, k: int, runs: Runs, tells: Tells) -> Proof:
    """Close the state graph of a plan, and try every test of it, the shortest first, up to the first difference."""
    closed = cover.closure(plan)
    proof = Proof(plan, k, len(closed.states), closed.transitions, cover.told_apart(plan, closed))
    tells(f"{plan.name}: {proof.states} states, {proof.transitions} transitions")
    whole = sorted(tests(plan, closed, k), key=len)
    for length, alike in groupby(whole, key=len):
        for ops in alike:
            seen = _judged(proof, runs, ops)
            if seen.failed:
                proof.counterexample = _shortest(proof, runs, whole, seen)
                return proof
        tells(f"{plan.name}: {proof.traces} of {len(whole)} traces, up to {length} operations")
    return proof


def tests(plan: Plan, closed: Closure, k: int) -> set[Ops] | list[Ops]:
    """Every path to a state, every sequence of 1 to k + 1 moves behind it, and every continuation of that."""
    found = dict[str, Ops]()
    for path in closed.states.values():
        for moved in _sequences(plan, path, k + 1):
            for continuation in plan.continuations(cover.walk(plan.start, moved).session):
                whole = (*moved, *continuation)[:LARGEST_TRACE]
                found.setdefault(repr(whole), whole)
    return list(found.values())


def _sequences(plan: Plan, path: Ops, moves: int) -> Iterator[Ops]:
    """The path with every sequence of so many moves behind it; shorter ones are in these."""
    if not moves:
        yield path
        return
    for move in plan.moves(cover.walk(plan.start, path).session):
        yield from _sequences(plan, path + move, moves - 1)


def _judged(proof: Proof, runs: Runs, ops: Ops) -> Outcome:
    seen = runs(Trace(proof.plan.start.profile, proof.plan.start.config, ops))
    proof.traces += 1
    proof.operations += len(seen.steps)
    return seen


def _shortest(proof: Proof, runs: Runs, whole: Iterable[Ops], seen: Outcome) -> Outcome:
    """No test fails on fewer operations: whatever begins a test is tried, as long as it is shorter."""
    tried = set[str]()
    best = seen
    for ops in whole:
        cut = ops[: len(best.steps) - 1]
        if not cut or repr(cut) in tried:
            continue
        tried.add(repr(cut))
        other = _judged(proof, runs, cut)
        best = other if other.failed else best
    return best
