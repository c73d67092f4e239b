"""Identifiers: for each state of a closed graph, sequences that distinguish it from all others, computed and
checked.

These are harmonised identifiers (Luo, Petrenko and Bochmann 1994): any two states share the beginning of a sequence
whose answers differ between them. Chow (1978) uses one set for all states: the case where they share everything.
Sequences and answers are compared up to shifted positions and renamed rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Any

from kvconform.generate.covers import Closure, Walk, walk
from kvconform.generate.strategies.plan_moves import Ops, Plan
from kvconform.oracle.abstract_state import Key
from kvconform.oracle.expected import SAVED
from kvspec.operations.table import Operation, cache_of
from kvspec.session.driver import Session
from kvspec.session.step import Step

Answers = dict[str, str]
"""The answer of the last operation, by beginning of a sequence."""

POSITIONS = ("to", "at", "start")
"""Arguments of operations that are positions."""

TRIED = 60
"""Most sequences tried on two states that the continuations do not distinguish."""


@dataclass
class Identifiers:
    """For each state the sequences that distinguish it from all others. Their positions are counted from the first
    that matters. `alike` has the pairs of states that no tried sequence distinguishes."""

    sequences: dict[Key, list[Ops]]
    alike: list[tuple[Key, Key]] = field(default_factory=list)


def _looks_and_continuations(plan: Plan, closed: Closure) -> dict[Key, list[Ops]]:
    """Give the continuations of each state, after a look if the plan has one."""
    look = [plan.look] if plan.look else []
    return {k: [*look, *plan.continuations(walk(plan.start, p).session)] for k, p in closed.states.items()}


def identifiers(plan: Plan, closed: Closure) -> Identifiers:
    """Compute the shortest beginnings of continuations that distinguish all states; for the rest, search moves."""
    whole = _looks_and_continuations(plan, closed)
    cut, alike = whole, _alike(_all_answers(plan, closed, whole))
    for fewer in () if alike else _shorter(plan, whole):
        if not _alike(_all_answers(plan, closed, fewer)):
            cut = fewer
            break
    found = Identifiers(cut)
    for one, other in alike:
        if not _searched(plan, closed, found.sequences, one, other):
            found.alike.append((one, other))
    for state, ends in found.sequences.items():
        found.sequences[state] = at(walk(plan.start, closed.states[state]).session, ends, -1)
    return found


def _shorter(plan: Plan, whole: dict[Key, list[Ops]]) -> Iterator[dict[Key, list[Ops]]]:
    """Give the beginnings of each state's first continuation, then of all; each alone and after a look."""
    ends = {k: [c for c in all_ if c != plan.look] for k, all_ in whole.items()}
    longest = max((len(c) for all_ in ends.values() for c in all_), default=0)
    for most in (1, None):
        for length in range(1, longest + 1):
            for look in ((), plan.look):
                yield {k: _distinct(look + c[:length] for c in all_[:most]) for k, all_ in ends.items()}


def _distinct(ops: Iterator[Ops]) -> list[Ops]:
    return list({repr(o): o for o in ops}.values())


def _all_answers(plan: Plan, closed: Closure, sequences: dict[Key, list[Ops]]) -> dict[Key, Answers]:
    return {k: answers(plan, closed.states[k], sequences[k]) for k in closed.states}


def answers(plan: Plan, path: Ops, sequences: list[Ops]) -> Answers:
    """Give the answers after a path, for the sequences and all their beginnings; and the caches and names that
    exist, because the caller knows them."""
    session = walk(plan.start, path).session
    names = sorted((kind, *sorted(there)) for kind, there in session.names.items() if there)
    found = {"": repr((sorted(session.caches), names))}
    for ops in sequences:
        w, numbers, so_far = walk(plan.start, path + ops), dict[int, int](), ""
        for op, step in zip(ops, w.steps[len(path) :], strict=True):
            so_far += repr(shifted(op, -base(session, op)))
            found[so_far] = _answer(op, step, w, session, numbers)
    return found


def at(session: Session, ends: list[Ops], sign: int = 1) -> list[Ops]:
    """Shift sequences with positions counted from 0 to a session's base; with -1, back."""
    return [tuple(shifted(op, sign * base(session, op)) for op in ops) for ops in ends]


def _alike(found: dict[Key, Answers]) -> list[tuple[Key, Key]]:
    """Give the pairs of states with the same answers to every shared sequence."""
    return [(a, b) for a, b in combinations(found, 2) if _same(found[a], found[b])]


def _same(one: Answers, other: Answers) -> bool:
    return all(other.get(asked, answer) == answer for asked, answer in one.items())


def _searched(plan: Plan, closed: Closure, sequences: dict[Key, list[Ops]], one: Key, other: Key) -> bool:
    """Search a move of either state that distinguishes them. If found, add it to both states' identifiers."""
    paths = closed.states[one], closed.states[other]
    first, second = (walk(plan.start, p).session for p in paths)
    for ops in islice(sorted(plan.moves(first), key=len), TRIED):
        moved = tuple(shifted(o, base(second, o) - base(first, o)) for o in ops)
        if not _same(answers(plan, paths[0], [ops]), answers(plan, paths[1], [moved])):
            sequences[one] = _distinct(iter([*sequences[one], ops]))
            sequences[other] = _distinct(iter([*sequences[other], moved]))
            return True
    return False


def base(session: Session, op: Operation) -> int:
    """Give the first position that matters to an operation's cache: 0 until a row has left a window."""
    saved = session.snapshots.get(op.get("name", ""))
    cache = session.caches.get(cache_of(op))
    if saved is not None:
        return max(0, int(saved.stop) - (saved.config.window or int(saved.stop)) - 1)
    window = getattr(cache, "window", None)
    return 0 if cache is None or window is None else max(0, int(cache.offset) - int(window) - 1)


def shifted(op: Operation, by: int) -> Operation:
    """Shift the operation's positions."""
    return {n: v + by if n in POSITIONS else v for n, v in op.items()}


def _answer(op: Operation, step: Step, w: Walk, before: Session, numbers: dict[int, int]) -> str:
    """Normalise the observations: rows numbered as they appear, positions counted from the first that matters."""
    values = {n: v - _base_of(before, op, n) if n.startswith(("offset", "drafted")) else v for n, v in _said(step)}
    mask, output = step.arrays.get("mask"), step.arrays.get("output")
    others = None if mask is None else mask.tobytes(), output is not None and bool(output.any())
    return repr((step.result, step.clause, values, numbered_rows(step, w, numbers), others))


def numbered_rows(step: Step, w: Walk, numbers: dict[int, int]) -> dict[str, list[int]]:
    """Number the rows of a step's arrays by their first appearance. A negative serial (no row) stays as it is."""
    rows = {name: a for name, a in step.arrays.items() if a is not None and name.endswith((".k", ".v"))}
    serials = {name: w.trace_inputs.book.read(a, name[-1])[0, 0].tolist() for name, a in rows.items()}
    return {n: [s if s < 0 else numbers.setdefault(s, len(numbers)) for s in each] for n, each in serials.items()}


def _said(step: Step) -> Iterator[tuple[str, Any]]:
    """Normalise values; for snapshot bounds, which are positions, keep only their distance."""
    for name, value in step.values.items():
        bounds = name.startswith(SAVED) and value is not None
        yield name, (value[1] - value[0], value[2]) if bounds else value


def _base_of(before: Session, op: Operation, value: str) -> int:
    """`offset.B` is of cache B."""
    letter = value.partition(".")[2] or cache_of(op)
    return base(before, {"op": op["op"], "cache": letter})
