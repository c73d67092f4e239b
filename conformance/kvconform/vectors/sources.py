"""Where vectors come from: worked examples, the covers, the hunt for mutants; and of each what is worth keeping."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from kvconform.generate import frozen_covers
from kvconform.generate.covers import FROZEN
from kvconform.mutants import kinds
from kvconform.oracle.reference import CitingReference
from kvconform.oracle.trace_inputs import TraceInputs
from kvconform.vectors.vector import Vector
from kvspec.contract import CHAPTERS
from kvspec.errors import BadInput
from kvspec.operations import notation
from kvspec.reading.anomalies import anomalies
from kvspec.reading.clauses import index
from kvspec.trace import VERSION, Trace, from_json

Happening = tuple[str, ...]
"""An operation with its result, and the clauses that it exercised; or with the operation before it."""


def examples(chapter: str) -> Iterator[Vector]:
    """Every worked example of a chapter."""
    for clause in index().values():
        if clause.chapter == chapter:
            yield from (Vector(e.id, "examples", e.trace, clause.id) for e in clause.examples)


def covering(chapter: str) -> Iterator[Vector]:
    """Of a chapter's frozen covers the traces, chosen greedily, in which everything happens that happens in any:
    every operation with every result, exercising every set of clauses, and after each other operation."""
    whole = [
        (cover.name, i, trace) for cover in frozen_covers.load(chapter) for i, trace in enumerate(cover.traces())
    ]
    for at in _chosen([trace for _, _, trace in whole]):
        name, i, trace = whole[at]
        yield Vector(f"{chapter}/{name}/{i}".replace(" ", "-"), "covering", trace)


def _chosen(whole: list[Trace]) -> Iterator[int]:
    """The places of those that have most of what is left, the shortest of these first."""
    each = [happens(trace) for trace in whole]
    left = set[Happening]().union(*each)
    while left:
        best = max(range(len(whole)), key=lambda i: (len(each[i] & left), -len(whole[i].ops)))
        left -= each[best]
        yield best


def happens(trace: Trace) -> set[Happening]:
    """All that happens in a trace."""
    reference, trace_inputs = CitingReference(observe=FROZEN), TraceInputs(trace)
    reference.begin(trace.kind, trace.config)
    found, before = set[Happening](), "open"
    for op in trace.ops:
        step = reference.do(op, trace_inputs.make(op))
        trace_inputs.done(op, step.result)
        found |= {("cites", op["op"], step.result, *sorted(step.cites)), ("after", before, op["op"], step.result)}
        before = op["op"]
    return found


def mutants(matrix: Path) -> dict[str, list[Vector]]:
    """By chapter, the shortest trace on which each mutant of a matrix (`mutants.json`) was found: one vector for
    each real bug, and one for each trace that finds systematic ones. Raises BadInput."""
    try:
        found = [m for m in json.loads(matrix.read_text(encoding="utf-8"))["mutants"] if _worth_keeping(m)]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise BadInput(f"{matrix}: not what `kvconform mutants --report` writes ({e})") from None
    real = [_real(m) for m in found if m["class"] != "systematic"]
    by_trace: dict[str, list[dict[str, Any]]] = {}
    for m in found:
        if m["class"] == "systematic":
            by_trace.setdefault(m["trace"], []).append(m)
    each = sorted([*real, *map(_systematic, by_trace.values())], key=lambda v: (v.bug_class == "systematic", v.id))
    return {p: [v for v in each if index()[v.clause].chapter == p] for p in CHAPTERS}


def _worth_keeping(m: dict[str, Any]) -> bool:
    """Whether it was found by what it did and not by how it ended; and is no control."""
    return bool(m["killed"] and m["by"] and m["operations"] and not m["control"])


def _clause(m: dict[str, Any]) -> str:
    """The clause that was blamed, one that the bug breaks if there is such."""
    return next((c for c in m["by"] if c in m["clauses"]), str(m["by"][0]))


def _real(m: dict[str, Any]) -> Vector:
    bug = kinds.planted().get(m["id"])
    anomaly = anomalies()[bug.anomaly] if bug else None
    notes = {"bug": m["says"], "shows": m["message"], "links": [m["link"]] if m["link"] else []}
    notes |= {"anomaly": anomaly.id, "effect": anomaly.effect} if anomaly else {}
    return Vector(m["id"], "mutants", trace(m["trace"]), _clause(m), m["class"], notes)


def _systematic(alike: list[dict[str, Any]]) -> Vector:
    """One trace for all mutants that it finds."""
    first = alike[0]
    id_ = f"systematic/{sha256(first['trace'].encode()).hexdigest()[:10]}"
    notes = {"shows": first["message"], "finds": [m["id"] for m in alike]}
    return Vector(id_, "mutants", trace(first["trace"]), _clause(first), "systematic", notes)


def trace(sentence: str) -> Trace:
    """Read what `notation.sentence` wrote. Raises BadInput."""
    head, _, ops = sentence.partition(": ")
    kind, _, fields = head.partition(" ")
    return notation.trace(kind, fields, ops)


def again(v: dict[str, Any]) -> Vector:
    """A vector of a document, to be written down anew. Raises BadInput where it holds no trace."""
    try:
        _, *ops = (step["op"] for step in v["steps"])
        made = from_json({"kvtrace": VERSION, "kind": v["kind"], "config": v["config"], "ops": ops})
        return Vector(v["id"], v["source"], made, v.get("clause", ""), v.get("class", ""), v.get("notes", {}))
    except (KeyError, TypeError, ValueError) as e:
        raise BadInput(f"not a vector: {type(e).__name__}: {e}") from None


SOURCES: dict[str, Callable[[str], Iterable[Vector]] | None] = {
    "examples": examples,
    "covering": covering,
    "mutants": None,
}
"""What there is of each chapter, by the name of its source; mutants come from a matrix."""
