"""The vectors of mutants: the shortest trace on which each was found, for engines to replay.

A run of operations is written out, one step each. A trace that is too long for that gives way to the one that is
frozen for the same bug, if there is one; else the bug has no vector, and is named with the reason.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from kvconform.bugs.known_bugs import known_bugs
from kvconform.judge import trial
from kvconform.vectors.vector import Vector
from kvspec.contract import CHAPTERS, description
from kvspec.errors import BadInput
from kvspec.notation import from_sentence
from kvspec.operations.table import length_of, takes_rows
from kvspec.reading.anomalies import anomalies
from kvspec.reading.clauses import index
from kvspec.session.driver import Session
from kvspec.trace import Trace
from kvworkshop.matrix import movable

MOST_STEPS = 70
"""Operations of a trace that are written out. Each step of a vector says all that is observed after it."""

MOST_ROWS = 1025
"""Rows that a trace may give, and slots of a buffer: a mask of one append says what each row sees of each other."""


class OfMatrix(NamedTuple):
    """What a matrix gives: vectors, and the mutants that have none."""

    vectors: dict[str, list[Vector]]
    """By chapter."""
    left_out: dict[str, str]
    """By the mutant's id, why."""


def of_matrix(file: Path, frozen: Mapping[str, Vector] = MappingProxyType({})) -> OfMatrix:
    """The vectors of a matrix (`mutants.json`). Raises BadInput. `frozen` are those there are, by their ids.

    There is one for each real bug, and one for each trace that finds systematic mutants.
    """
    try:
        rows = [m for m in json.loads(file.read_text(encoding="utf-8"))["mutants"] if _worth_keeping(m)]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise BadInput(f"{file}: not what `kvconform mutants --report` writes ({e})") from None
    left_out, real = dict[str, str](), list[Vector]()
    alike = defaultdict[str, list[dict[str, Any]]](list)
    for m in rows:
        found = _real(m, frozen.get(m["id"])) if m["class"] != "systematic" else too_long(from_sentence(m["trace"]))
        if isinstance(found, Vector):
            real.append(found)
        elif found:
            left_out[m["id"]] = found
        else:
            alike[m["trace"]].append(m)
    vectors = [*sorted(real, key=_id), *sorted(map(_systematic, alike.values()), key=_id)]
    return OfMatrix({chapter: [v for v in vectors if _chapter(v) == chapter] for chapter in CHAPTERS}, left_out)


def _id(vector: Vector) -> str:
    return vector.id


def too_long(trace: Trace) -> str:
    """Why a trace is too long to be written out; empty where it is not."""
    steps = sum(map(length_of, trace.ops))
    if steps > MOST_STEPS:
        return f"its trace has {steps} operations, of at most {MOST_STEPS}"
    given = sum(op.get("n", 1) for op in trace.one_by_one().ops if takes_rows(op))
    rows = max(given, trace.config.capacity or 0)
    return f"its trace has {rows} rows or slots, of at most {MOST_ROWS}" if rows > MOST_ROWS else ""


def _chapter(found: Vector) -> str:
    """The chapter of its clause; of a general one, its kind."""
    clause = index()[found.clause]
    return found.trace.kind if clause.general else clause.chapter


def _worth_keeping(m: dict[str, Any]) -> bool:
    """Whether it was found by what it did and not by how it ended; and is no control."""
    return bool(m["killed"] and m["by"] and m["operations"] and not m["control"])


def _clause(m: dict[str, Any]) -> str:
    """The clause that was blamed, one that the bug breaks if there is such."""
    return next((c for c in m["by"] if c in m["clauses"]), str(m["by"][0]))


def _real(m: dict[str, Any], frozen: Vector | None) -> Vector | str:
    """The trace that shows a bug, or else the one that is frozen for it; or why it has none."""
    trace = from_sentence(m["trace"])
    found = too_long(trace) or Vector(m["id"], "mutants", trace.one_by_one(), _clause(m), m["class"], _notes(m))
    if isinstance(found, Vector) and found.trace != trace:
        found = _observed_in_between(found)
    if isinstance(found, str) and frozen and not too_long(frozen.trace):
        return replace(frozen, notes=_notes(m) | {"shows": frozen.notes["shows"]})
    return found


def _notes(m: dict[str, Any]) -> dict[str, Any]:
    """What is known of a bug."""
    notes = {"bug": m["says"], "shows": m["message"], "links": [m["link"]] if m["link"] else []}
    if bug := known_bugs().get(m["id"]):
        notes |= {"anomaly": bug.anomaly, "effect": anomalies()[bug.anomaly].effect}
    return notes


def _observed_in_between(found: Vector) -> Vector | str:
    """The same with what its bug shows where each operation of a run is observed; or why it shows nothing."""
    bug = known_bugs()[found.id]
    adapter = bug.adapter()
    result = trial.on(found.trace, partial(Session, adapter), description(adapter.describe()))
    if not result.failed:
        return "its trace shows it only unobserved"
    clause = next((c for c in result.blamed if c in bug.clauses), result.blamed[0])
    notes = found.notes | {"shows": movable(result.differences[0].message)}
    return replace(found, trace=result.trace.cut(len(result.steps)), clause=clause, notes=notes)


def _systematic(alike: list[dict[str, Any]]) -> Vector:
    """One trace for all mutants that it finds."""
    first = alike[0]
    id_ = f"systematic/{sha256(first['trace'].encode()).hexdigest()[:10]}"
    notes = {"shows": first["message"], "finds": [m["id"] for m in alike]}
    return Vector(id_, "mutants", from_sentence(first["trace"]).one_by_one(), _clause(first), "systematic", notes)
