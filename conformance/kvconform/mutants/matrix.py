"""The mutation matrix: what found which mutant, how soon, and whether it named the right clause."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from kvconform.mutants.hunt import SOURCES, Hunted
from kvconform.mutants.mutant import Mutant
from kvspec.clauses import digest
from kvspec.notation import sentence

Document = dict[str, Any]
VERSION = 1


def made(mutants: Sequence[Mutant], found: Sequence[Hunted], seconds: float) -> Document:
    """The matrix as the JSON document that is written."""
    by_id = {h.id: h for h in found}
    return {
        "kvmutants": VERSION,
        "spec": digest(),
        "seconds": round(seconds, 1),
        "mutants": [_entry(m, by_id[m.id]) for m in mutants],
    }


def _entry(m: Mutant, h: Hunted) -> Document:
    return {
        "id": m.id,
        "class": m.cls,
        "link": m.link,
        "says": m.says,
        "clauses": list(m.clauses),
        "killed": h.killed,
        "by": list(h.shortest.clauses) if h.shortest else [],
        "operations": h.operations,
        "equivalent": m.equivalent,
        "control": ("lives" if m.lives else "dies") if m.cls == "control" else "",
        "right": h.right,
        "sources": {s: h.kills[s] is not None for s in SOURCES if s in h.kills},
        "trace": sentence(h.shortest.trace) if h.shortest else "",
        "message": h.shortest.message if h.shortest else "",
        "seconds": round(h.seconds, 3),
    }


def wrong(document: Document) -> list[str]:
    """The ids of the mutants that live and are not argued, or die and are."""
    return [m["id"] for m in document["mutants"] if result(m).isupper()]


def result(m: Document) -> str:
    """What came of a mutant, in capitals where it is not as it must be."""
    if m["control"] == "lives":
        return "ACCUSED" if m["killed"] else "lives"
    if m["equivalent"]:
        return "FOUND" if m["killed"] else "equivalent"
    return "killed" if m["killed"] else "SURVIVED"


def write(document: Document, folder: Path) -> None:
    """Write mutants.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mutants.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def printed(document: Document, how: str) -> str:
    """The matrix as a table, as Markdown or as JSON."""
    if how == "json":
        return json.dumps(document, indent=1)
    rows = [_row(m) for m in document["mutants"]]
    head = ("mutant", "result", *SOURCES, "by", "operations", "right clause", "seconds")
    table = tabulate(rows, head, tablefmt="github" if how == "markdown" else "simple")
    return f"{table}\n\n{summary(document)}"


def _row(m: Document) -> tuple[Any, ...]:
    sources = [{True: "x", False: "-", None: ""}[m["sources"].get(s)] for s in SOURCES]
    right = {True: "yes", False: "no", None: ""}[m["right"]]
    return (m["id"][:100], result(m), *sources, " ".join(m["by"][:3]), m["operations"] or "", right, m["seconds"])


def summary(document: Document) -> str:
    """How many were killed, by what, and how soon."""
    every = document["mutants"]
    killed = [m for m in every if m["killed"]]
    times = sorted(m["seconds"] for m in every)
    parts = [f"{len(killed)} of {len(every)} mutants killed in {document['seconds']:g} s"]
    parts += [f"{sum(m['sources'].get(s) is True for m in every)} by {s}" for s in SOURCES]
    parts.append(f"{sum(m['right'] is True for m in every)} blamed on the right clause")
    parts.append(f"median {times[len(times) // 2]:.3f} s each")
    return "; ".join(parts)
