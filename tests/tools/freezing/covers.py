"""Covers, computed again from the plans of the chapters, as `freeze_vectors` writes them.

A cover follows each transition with continuations, appends that reveal hidden state (a ring index lost on a restore
is invisible until the next append). Whether the continuations distinguish all states is computed, not assumed, and
is recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kvconform.generate import frozen_covers
from kvconform.generate.covers import Closure, Walk, closure, key_of, walk
from kvconform.generate.frozen_covers import Cover, load, outcome_text, sign
from kvconform.generate.registry import planned
from kvconform.generate.strategies.plan_moves import Ops, Plan
from kvconform.judge.levels import frozen_answers
from kvconform.judge.lockstep import observables
from kvconform.oracle.reference import CitingReference, claims
from kvconform.oracle.trace_inputs import TraceInputs
from kvspec import notation
from kvspec.operations.table import RUN, length_of
from kvspec.session.step import Step
from kvspec.trace import Frozen, Outcome, Trace
from kvworkshop.prove.identifiers import numbered_rows

if TYPE_CHECKING:
    from kvconform.oracle.abstract_state import Key

Shown = dict["Key", list[str]]
"""What is observed of each state and after its continuations, in their order."""

LOOKED_AT = 2
"""Operations of a path that are looked at one by one: a run of one saves nothing."""

VERSION = 3
"""Version of the document."""

NOTES = (
    "Each trace with a hash of all that the reference answers to it, and how each operation ends: 0 stands for the "
    "first outcome of the cover, 1 for the second. An outcome is a result and the clauses exercised."
)
"""What the document says of itself."""


def compute(chapter: str) -> dict[str, Any]:
    """Compute the covers of a chapter from its plans, as the document to freeze."""
    return _document(chapter, [_computed(plan) for plan in planned()[chapter]()])


def answered(chapter: str) -> dict[str, Any]:
    """The same document with the traces that are frozen: the reference answers them again, which takes seconds. It
    is enough where steps cite other clauses, and the reference does what it did."""
    frozen = json.loads(frozen_covers.path(chapter).read_text(encoding="utf-8"))["covers"]
    return _document(chapter, [_answered(was, cover) for was, cover in zip(frozen, load(chapter), strict=True)])


def _answered(was: dict[str, Any], cover: Cover) -> dict[str, Any]:
    outcomes, lines = _lines(cover.start, [trace.ops for trace in cover.traces()])
    return {**was, "outcomes": outcomes, "traces": lines}


def _document(chapter: str, covers: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "kvvectors": VERSION,
        "licence": "CC0-1.0",
        "chapter": chapter,
        "notes": NOTES,
        "traces": sum(len(c["traces"]) for c in covers),
        "covers": covers,
    }


def _computed(plan: Plan) -> dict[str, Any]:
    closed = closure(plan)
    outcomes, lines = _lines(plan.start, traces(plan, closed))
    return {
        "name": plan.name,
        "kind": plan.start.kind,
        "config": plan.start.config.to_json(),
        "states": len(closed.states),
        "transitions": closed.transitions,
        "told_apart": told_apart(plan, closed),
        "outcomes": outcomes,
        "traces": lines,
    }


def _lines(start: Trace, whole: Iterable[Ops]) -> tuple[list[str], list[list[str]]]:
    """The outcomes of a cover's operations; and its traces, with what the reference answers."""
    outcomes, lines = dict[Outcome, str](), list[list[str]]()
    for ops in whole:
        frozen = answers(start, ops)
        ends = "".join(outcomes.setdefault(outcome, sign(len(outcomes))) for outcome in frozen.outcomes)
        lines.append(["; ".join(map(notation.words, ops)), frozen.digest, ends])
    return list(map(outcome_text, outcomes)), lines


def text(document: dict[str, Any]) -> str:
    """Write the document with one trace a line, so that a change is a readable diff."""
    covers = document.pop("covers")
    head = json.dumps(document, indent=1)[:-2]
    return head + ',\n "covers": [\n' + ",\n".join(map(_cover_text, covers)) + "\n]}\n"


def _cover_text(c: dict[str, Any]) -> str:
    traces = c.pop("traces")
    lines = ",\n".join("   " + json.dumps(t) for t in traces)
    return "  " + json.dumps(c)[:-1] + ', "traces": [\n' + lines + "\n  ]}"


def traces(plan: Plan, closed: Closure) -> Iterator[Ops]:
    """Build the cover, shortest first: each transition, followed by continuations that tell the state it reaches.

    The first way to a state is followed by each continuation. On other ways they take turns: as many follow as tell
    the state from each other state (the Wp-method: Fujiwara and others, Test selection based on finite state
    models, 1991). Moves that stay in their state (refusals, views) share one trace. The way to a state is one run
    and its last operation: what it shows on its way was looked at where those states were reached.
    """
    found, shown = dict[str, Ops](), _shown(plan, closed)
    leaving = [] if plan.only_staying else closed.leaving
    for turn, (path, move) in enumerate([*leaving, *_chained(closed.staying)]):
        there = walk(plan.start, path + move)
        reached, after = key_of(plan, there), plan.continuations(there.session)
        first = closed.states[reached] == path + move
        for number in range(len(after)) if first else _telling(shown, reached, turn):
            whole = _at_once(path) + move + after[number]
            found.setdefault(repr(whole), whole)
    yield from sorted(found.values(), key=lambda ops: sum(map(length_of, ops)))


def _at_once(path: Ops) -> Ops:
    """The same path, all of it but its last operation as one run."""
    return ({"op": RUN.name, "times": 1, "ops": list(path[:-1])}, path[-1]) if len(path) > LOOKED_AT else path


def _chained(staying: list[tuple[Ops, Ops]]) -> list[tuple[Ops, Ops]]:
    """Join all staying moves of a state into one move."""
    by_path = dict[str, tuple[Ops, Ops]]()
    for path, move in staying:
        _, moves = by_path.get(repr(path), ((), ()))
        by_path[repr(path)] = (path, moves + move)
    return list(by_path.values())


def _telling(shown: Shown, reached: Key, turn: int) -> list[int]:
    """Number the continuation whose turn it is, and others as long as they tell the state from further ones."""
    told = [{key for key, other in shown.items() if seen not in other} for seen in shown[reached]]
    chosen, known, first = list[int](), set["Key"](), turn % len(told)
    for number in (*range(first, len(told)), *range(first)):
        chosen += [number] if not chosen or told[number] - known else []
        known |= told[number]
    return chosen


def told_apart(plan: Plan, closed: Closure) -> bool:
    """Whether the observations in each state, and after its continuations, differ from those of every other state.

    A frozen cover records this. A proof needs a stricter test: see `kvworkshop.prove.identifiers`.
    """
    return len({repr(seen) for seen in _shown(plan, closed).values()}) == len(closed.states)


def _shown(plan: Plan, closed: Closure) -> Shown:
    """What each state shows, and after each of its continuations."""
    return {
        key: [_seen(plan, path, each) for each in plan.continuations(walk(plan.start, path).session)]
        for key, path in closed.states.items()
    }


def _seen(plan: Plan, path: Ops, continuation: Ops) -> str:
    """What is observed of a state, of a look at it, and after a continuation."""
    steps = list[str]()
    for each in (plan.look, continuation):
        w, numbers = walk(plan.start, path + each), dict[int, int]()
        steps += [_renamed(s, w, numbers) for s in w.steps[max(0, len(path) - 1) :]]
    return repr(steps)


def _renamed(step: Step, w: Walk, numbers: dict[int, int]) -> str:
    """Normalise observations: rows are numbered as they appear, positions past a window count from its end."""
    values = {n: v - _base(w, n) if n.startswith(("offset", "drafted")) else v for n, v in step.values.items()}
    answered = {name: bool(a.any()) for name, a in step.arrays.items() if name == "output" and a is not None}
    return repr((step.result, step.clause, values, numbered_rows(step, w, numbers), answered))


def _base(w: Walk, value: str) -> int:
    """Give the first position that matters to the cache of a value: B for `offset.B`, else A."""
    cache = w.session.caches[value.partition(".")[2] or "A"]
    return max(0, cache.offset - cache.window - 1) if hasattr(cache, "window") else 0


def answers(start: Trace, ops: Ops) -> Frozen:
    """What the reference answers to a trace, observed as it is when an adapter that claims all is judged."""
    trace = Trace(start.kind, start.config, ops)
    reference, trace_inputs = CitingReference(observe=observables(trace, claims(), "storage")), TraceInputs(trace)
    reference.begin(start.kind, start.config)
    digest, outcomes = frozen_answers.Digest(), list[Outcome]()
    for op in ops:
        step = reference.do(op, trace_inputs.make(op))
        digest.add(step)
        outcomes.append(Outcome(step.result, step.clause, step.cites, tuple(step.values.get("failed", ()))))
        trace_inputs.done(op, step.result)
    return Frozen(str(digest), tuple(outcomes))
