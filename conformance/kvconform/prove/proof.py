"""Exhaustive in the small: all states of the reference for small configurations, and an adapter tried from each.

The tests are those of the W-method (Chow 1978; Vasilevskii 1973), with harmonised identifiers in the place of one
set W: a state cover, by shortest paths; behind it every sequence of up to k + 1 moves; behind that what tells the
state reached from all others, which `kvconform.prove.identifiers` computes and checks. An adapter that passes all
agrees
with the oracle on every trace of that alphabet, under the assumptions that the spec's appendix on proofs explains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from kvconform.generate import covers
from kvconform.generate.covers import Closure, Ops, Plan
from kvconform.judge.trial import TrialResult
from kvconform.prove import identifiers
from kvconform.prove.identifiers import Identifiers
from kvspec.trace import LARGEST_TRACE, Trace

Runs = Callable[[Trace], TrialResult]
"""Judges one trace."""

Tells = Callable[[str], None]
"""Says how far it came."""

CONTINUED = 1
"""Moves behind which all continuations of a plan are tried, more than it takes to tell states apart."""

BRUTE = 20_000
"""Traces that are tried, without the W-method, to see that no shorter one fails."""

EVERY = 2000
"""Traces after which it says how far it came."""


@dataclass
class Proof:
    """What was done for one configuration, and the shortest counterexample if there was one."""

    plan: Plan
    k: int
    states: int = 0
    transitions: int = 0
    told_apart: bool = False
    longest: int = 0
    """Operations of the longest sequence that it takes to tell a state from the others."""
    planned: int = 0
    traces: int = 0
    operations: int = 0
    seconds: float = 0.0
    counterexample: TrialResult | None = field(default=None, repr=False)
    agreed: int = 0
    """With a counterexample: all traces of the alphabet of so many operations were tried, and none fails."""

    @property
    def holds(self) -> bool:
        """Whether the claim follows."""
        return self.counterexample is None and self.told_apart

    @property
    def shortest(self) -> bool:
        """Whether every shorter trace was tried."""
        return self.counterexample is not None and self.agreed >= len(self.counterexample.steps) - 1


def proved(plan: Plan, k: int, runs: Runs, tells: Tells) -> Proof:
    """Close the state graph of a plan and try every test of it, shortest first; find the shortest difference."""
    closed = covers.closure(plan)
    found = identifiers.identifiers(plan, closed)
    longest = max(len(ops) for ends in found.sequences.values() for ops in ends)
    proof = Proof(plan, k, len(closed.states), closed.transitions, not found.alike, longest)
    whole = tests(plan, closed, found, k)
    proof.planned = len(whole)
    tells(f"{plan.name}: {proof.states} states, {proof.transitions} transitions, {len(whole)} traces")
    _all_tried(proof, runs, whole, tells)
    if proof.counterexample is not None:
        _brutally(proof, runs)
    return proof


def _all_tried(proof: Proof, runs: Runs, whole: list[Ops], tells: Tells) -> None:
    """Judge every test. What is tried after a difference is cut to fewer operations than it took."""
    cuts = set[str]()
    for i, ops in enumerate(whole, 1):
        best = proof.counterexample
        if best is not None:
            ops = ops[: len(best.steps) - 1]
            if not ops or repr(ops) in cuts:
                continue
            cuts.add(repr(ops))
        _judge(proof, runs, ops)
        if i % EVERY == 0 or i == len(whole):
            tells(f"{proof.plan.name}: {i} of {len(whole)} traces, up to {len(ops)} operations")


def _judge(proof: Proof, runs: Runs, ops: Ops) -> None:
    """Judge one trace; one that differs is the counterexample."""
    seen = runs(Trace(proof.plan.start.kind, proof.plan.start.config, ops))
    proof.traces += 1
    proof.operations += len(seen.steps)
    if seen.failed:
        proof.counterexample = seen


def _brutally(proof: Proof, runs: Runs) -> None:
    """All traces of the alphabet of 1, 2, ... operations, as long as they are fewer and not too many."""
    length = 1
    while proof.counterexample and length < len(proof.counterexample.steps):
        every = _of_length(proof.plan, length)
        if len(every) > BRUTE:
            return
        for ops in every:
            _judge(proof, runs, ops)
            if proof.counterexample.steps and len(proof.counterexample.steps) <= length:
                return
        proof.agreed = length
        length += 1


def _of_length(plan: Plan, length: int) -> list[Ops]:
    """Every trace of the alphabet of so many operations, but no more than would be tried and one."""
    found = dict[str, Ops]()
    todo: list[Ops] = [()]
    while todo and len(found) <= BRUTE:
        path = todo.pop()
        for move in plan.moves(covers.walk(plan.start, path).session):
            ops = path + move
            if len(ops) < length:
                todo.append(ops)
            else:
                found.setdefault(repr(ops[:length]), ops[:length])
    return list(found.values())


def tests(plan: Plan, closed: Closure, found: Identifiers, k: int) -> list[Ops]:
    """Every path to a state, behind it every sequence of up to k + 1 moves, behind that what tells states apart;
    shortest first, without those that are the beginning of another."""
    every = dict[tuple[str, ...], Ops]()
    for path in closed.states.values():
        for ops, moves in _sequences(plan, path, k + 1):
            for end in _ends(plan, found, ops, moves):
                whole = (ops + end)[:LARGEST_TRACE]
                every.setdefault(tuple(map(repr, whole)), whole)
    last: tuple[str, ...] = ()
    ordered = [*sorted(every), last]
    return sorted((every[a] for a, b in pairwise(ordered) if b[: len(a)] != a), key=len)


def _sequences(plan: Plan, path: Ops, most: int) -> Iterator[tuple[Ops, int]]:
    """The path with every sequence of up to so many moves behind it, and how many those are."""
    level = [path]
    for moves in range(most + 1):
        yield from ((ops, moves) for ops in level)
        if moves < most:
            level = [ops + m for ops in level for m in plan.moves(covers.walk(plan.start, ops).session)]


def _ends(plan: Plan, found: Identifiers, ops: Ops, moves: int) -> Iterator[Ops]:
    """What tells the state reached from all others; behind one move the continuations of the plan too."""
    w = covers.walk(plan.start, ops)
    yield from identifiers.at(w.session, found.sequences[covers.key_of(plan, w)])
    if moves == CONTINUED:
        yield from plan.continuations(w.session)
