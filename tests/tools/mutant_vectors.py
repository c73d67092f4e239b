"""The vectors of mutants: the shortest trace on which each was found, for engines to replay."""

from __future__ import annotations

import json
from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from kvconform.bugs.known_bugs import known_bugs
from kvconform.vectors.vector import Vector
from kvspec.contract import CHAPTERS
from kvspec.errors import BadInput
from kvspec.notation import from_sentence
from kvspec.reading.anomalies import anomalies
from kvspec.reading.clauses import index


def of_matrix(file: Path) -> dict[str, list[Vector]]:
    """The vectors of a matrix (`mutants.json`), by chapter. Raises BadInput.

    There is one for each real bug, and one for each trace that finds systematic mutants.
    """
    try:
        rows = [m for m in json.loads(file.read_text(encoding="utf-8"))["mutants"] if _worth_keeping(m)]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise BadInput(f"{file}: not what `kvconform mutants --report` writes ({e})") from None
    alike = defaultdict[str, list[dict[str, Any]]](list)
    for m in rows:
        alike[m["trace"]] += [m] if m["class"] == "systematic" else []
    real = [_real(m) for m in rows if m["class"] != "systematic"]
    systematic = [_systematic(each) for each in alike.values() if each]
    vectors = [*sorted(real, key=lambda v: v.id), *sorted(systematic, key=lambda v: v.id)]
    return {chapter: [v for v in vectors if _chapter(v) == chapter] for chapter in CHAPTERS}


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


def _real(m: dict[str, Any]) -> Vector:
    """The trace that shows a bug."""
    notes = {"bug": m["says"], "shows": m["message"], "links": [m["link"]] if m["link"] else []}
    if bug := known_bugs().get(m["id"]):
        notes |= {"anomaly": bug.anomaly, "effect": anomalies()[bug.anomaly].effect}
    return Vector(m["id"], "mutants", from_sentence(m["trace"]), _clause(m), m["class"], notes)


def _systematic(alike: list[dict[str, Any]]) -> Vector:
    """One trace for all mutants that it finds."""
    first = alike[0]
    id_ = f"systematic/{sha256(first['trace'].encode()).hexdigest()[:10]}"
    notes = {"shows": first["message"], "finds": [m["id"] for m in alike]}
    return Vector(id_, "mutants", from_sentence(first["trace"]), _clause(first), "systematic", notes)
