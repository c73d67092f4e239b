"""Covers, computed again from the plans of the chapters, as `freeze_vectors` writes them.

A cover follows each transition with continuations, appends that reveal hidden state (a ring index lost on a restore
is invisible until the next append). Whether the continuations distinguish all states is computed, not assumed, and
is recorded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from kvconform.generate.covers import Closure, Ops, Plan, Walk, closure, walk
from kvconform.generate.registry import planned
from kvconform.prove.identifiers import numbered_rows
from kvspec import notation
from kvspec.session.step import Step
from kvspec.trace import Trace

VERSION = 2
"""Version of the document."""


def compute(chapter: str) -> dict[str, Any]:
    """Compute the covers of a chapter from its plans, as the document to freeze."""
    plans = planned()[chapter]()
    covers = [_computed(plan) for plan in plans]
    return {
        "kvvectors": VERSION,
        "licence": "CC0-1.0",
        "chapter": chapter,
        "notes": "Each trace with the first 8 digits of the sha256 of all the reference does on it.",
        "traces": sum(len(c["traces"]) for c in covers),
        "covers": covers,
    }


def _computed(plan: Plan) -> dict[str, Any]:
    closed = closure(plan)
    lines = [["; ".join(map(notation.words, ops)), digest(plan.start, ops)] for ops in traces(plan, closed)]
    return {
        "name": plan.name,
        "kind": plan.start.kind,
        "config": plan.start.config.to_json(),
        "states": len(closed.states),
        "transitions": closed.transitions,
        "told_apart": told_apart(plan, closed),
        "traces": lines,
    }


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
