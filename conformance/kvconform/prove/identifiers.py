"""What tells the states of a closed graph apart: for every state a set of sequences, computed and checked.

These are harmonised identifiers (Luo, Petrenko and Bochmann 1994): any two states have the beginning of a sequence
in common that is answered otherwise from one than from the other. One set for all states, as in Chow (1978), is the
case where they have all of it in common. What is common, and what is answered, is decided up to shifting positions
and renaming rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Any

from kvconform.generate.covers import Closure, Ops, Plan, Walk, number, walk
from kvconform.oracle.abstract_state import Key
from kvspec.operations.table import Operation, cache_of
from kvspec.session.driver import Session
from kvspec.session.step import Step

Answers = dict[str, str]
"""By the beginning of a sequence: what its last operation answers."""

POSITIONS = ("to", "at", "start")
"""Arguments of operations that are positions."""

TRIED = 60
"""Sequences that are tried on two states that the continuations do not tell apart."""


@dataclass
class Identifiers:
    """For each state the sequences that tell it from all others, positions in them counted from the first that
    matters; and pairs of states that nothing tried tells apart."""

    sequences: dict[Key, list[Ops]]
    alike: list[tuple[Key, Key]] = field(default_factory=list)


def _looks_and_continuations(plan: Plan, closed: Closure) -> dict[Key, list[Ops]]:
    """The continuations of each state; before them a look, where there is any."""
    look = [plan.look] if plan.look else []
    return {k: [*look, *plan.continuations(walk(plan.start, p).session)] for k, p in closed.states.items()}


def identifiers(plan: Plan, closed: Closure) -> Identifiers:
    """The shortest beginnings of the continuations that tell all states apart; what all of them leave, by moves."""
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
    """Beginnings of the first continuation of each state, then of all; each as it is, and behind a look."""
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
    """What is answered behind a path, by the sequences asked and all their beginnings; and which caches and names
    there are, which whoever asks knows."""
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
    """Sequences with their positions counted from 0, moved to where a session is; with -1 the other way."""
    return [tuple(shifted(op, sign * base(session, op)) for op in ops) for ops in ends]


def _alike(found: dict[Key, Answers]) -> list[tuple[Key, Key]]:
    """Pairs of states that answer whatever is asked of both in the same way."""
    return [(a, b) for a, b in combinations(found, 2) if _same(found[a], found[b])]


def _same(one: Answers, other: Answers) -> bool:
    return all(other.get(asked, answer) == answer for asked, answer in one.items())


def _searched(plan: Plan, closed: Closure, sequences: dict[Key, list[Ops]], one: Key, other: Key) -> bool:
    """Whether a move of either tells two states apart; if so both have it among their identifiers from now on."""
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
    """The first position that matters to what an operation is for: 0 as long as nothing has left a window."""
    saved = session.snapshots.get(op.get("name", ""))
    cache = session.caches.get(cache_of(op))
    if saved is not None:
        return max(0, int(saved.stop) - (saved.config.window or int(saved.stop)) - 1)
    window = getattr(cache, "window", None)
    return 0 if cache is None or window is None else max(0, int(cache.offset) - int(window) - 1)


def shifted(op: Operation, by: int) -> Operation:
    """The operation with its positions moved."""
    return {n: v + by if n in POSITIONS else v for n, v in op.items()}


def _answer(op: Operation, step: Step, w: Walk, before: Session, numbers: dict[int, int]) -> str:
    """What was observed: rows numbered as they are met, positions counted from the first that matters."""
    rows = {
        name: [number(int(s), numbers) for s in w.trace_inputs.book.read(a, name[-1])[0, 0]]
        for name, a in step.arrays.items()
        if a is not None and name.endswith((".k", ".v"))
    }
    values = {n: v - _base_of(before, op, n) if n.startswith(("offset", "drafted")) else v for n, v in _said(step)}
    mask, output = step.arrays.get("mask"), step.arrays.get("output")
    others = None if mask is None else mask.tobytes(), output is not None and bool(output.any())
    return repr((step.result, step.clause, values, rows, others))


def _said(step: Step) -> Iterator[tuple[str, Any]]:
    """Values; of the bounds of snapshots, which are positions, only how far they are apart."""
    for name, value in step.values.items():
        bounds = name.startswith(("snapshot", "parent", "child")) and value is not None
        yield name, (value[1] - value[0], value[2]) if bounds else value


def _base_of(before: Session, op: Operation, value: str) -> int:
    """`offset.B` is of cache B."""
    letter = value.partition(".")[2] or cache_of(op)
    return base(before, {"op": op["op"], "cache": letter})
