"""Proofs for small configurations: tries an adapter from every state of the reference.

The tests are those of the W-method (Chow 1978, Vasilevskii 1973), with harmonised identifiers instead of one set
W. A test goes to a state by a shortest path, then makes up to k + 1 moves, in every sequence. It ends with what
tells the state reached from all others; `kvworkshop.prove.identifiers` computes and checks that. An adapter that
passes all agrees with the oracle on every trace of that alphabet, under the assumptions that the spec's appendix
on proofs explains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from kvconform.generate import covers
from kvconform.generate.covers import Closure
from kvconform.generate.strategies.plan_moves import Ops, Plan
from kvconform.judge.trial_result import TrialResult
from kvspec.trace import LARGEST_TRACE, Trace
from kvworkshop.prove import identifiers
from kvworkshop.prove.identifiers import Identifiers

Runs = Callable[[Trace], TrialResult | None]
"""Judges one trace, without what the adapter does not claim, or None if nothing of it is claimed."""

Tells = Callable[[str], None]
"""Reports progress."""

CONTINUED = 1
"""Moves after which all continuations of a plan are tried, though fewer would distinguish the states."""

BRUTE = 20_000
"""Most traces that are tried without the W-method, to check that no shorter one fails."""

EVERY = 2000
"""Traces between two reports of progress."""


@dataclass
class Proof:
    """The proof of one configuration: what was tried, and the shortest counterexample, if any."""

    plan: Plan
    k: int
    states: int = 0
    transitions: int = 0
    told_apart: bool = False
    longest: int = 0
    """Operations of the longest sequence needed to distinguish a state from the others."""
    planned: int = 0
    traces: int = 0
    operations: int = 0
    seconds: float = 0.0
    whole: bool = True
    """Whether every trace was judged as it is: an adapter is not asked for what it does not claim."""
    counterexample: TrialResult | None = field(default=None, repr=False)
    agreed: int = 0
    """With a counterexample: all traces of up to this many operations were tried, and none fails."""

    @property
    def holds(self) -> bool:
        """Tell whether the claim follows."""
        return self.counterexample is None and self.told_apart and self.whole

    @property
    def shortest(self) -> bool:
        """Tell whether every shorter trace was tried."""
        return self.counterexample is not None and self.agreed >= len(self.counterexample.steps) - 1


def proved(plan: Plan, k: int, runs: Runs, tells: Tells) -> Proof:
    """Close the state graph of a plan and try every test of it, shortest first. Find the shortest difference."""
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
    """Judge every test. After a difference, cut the later tests to fewer operations than it took."""
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
    """Judge one trace. If it differs, it is the counterexample."""
    seen = runs(trace := Trace(proof.plan.start.kind, proof.plan.start.config, ops))
    proof.whole &= seen is not None and seen.trace == trace
    if seen is None:
        return
    proof.traces += 1
    proof.operations += len(seen.steps)
    if seen.failed:
        proof.counterexample = seen


def _brutally(proof: Proof, runs: Runs) -> None:
    """Try all traces of 1, 2, ... operations, up to one less than the counterexample's, while there are not too
    many."""
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
    """Give every trace with this number of operations, up to one more than may be tried."""
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
    """Give the tests: a path to each state, then every sequence of up to k + 1 moves, then what distinguishes
    states. The shortest come first, and a test that begins another is left out."""
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
    """Extend the path by every sequence of up to this many moves, and count the moves."""
    level = [path]
    for moves in range(most + 1):
        yield from ((ops, moves) for ops in level)
        if moves < most:
            level = [ops + m for ops in level for m in plan.moves(covers.walk(plan.start, ops).session)]


def _ends(plan: Plan, found: Identifiers, ops: Ops, moves: int) -> Iterator[Ops]:
    """Give what distinguishes the reached state from all others; after one move, also the plan's continuations."""
    w = covers.walk(plan.start, ops)
    yield from identifiers.at(w.session, found.sequences[covers.key_of(plan, w)])
    if moves == CONTINUED:
        yield from plan.continuations(w.session)
