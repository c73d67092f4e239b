"""A serving engine's record as Markdown."""

from __future__ import annotations

from kvreports.markdown import code, fenced, literal, table
from kvreports.serving import parts
from kvspec.records.serving import ServingFailure, ServingRecord


def render(record: ServingRecord, spec: str = "") -> str:
    """The whole record. With `spec`, the address of the chapters' folder, the ids of clauses are links."""
    told = [f"# {literal(record.engine.name, 200)}", f"{parts.headline(record)}."]
    told += ["## What is wrong"] * bool(record.failures) + [_failure(f) for f in record.failures]
    rows = [(link(row[0], spec), *map(literal, row[1:])) for row in parts.rows(record)]
    told += ["## Clauses", table(parts.HEAD, rows)]
    told += ["## What was asked", table(("", ""), [(name, literal(text)) for name, text in parts.facts(record)])]
    if record.untold:
        told += [
            "## What cannot be told",
            table(("what", "times"), [(literal(t), str(n)) for t, n in record.untold.items()]),
        ]
    return "\n\n".join(told) + "\n"


def _failure(f: ServingFailure) -> str:
    before = "" if f.alone else ", only behind other requests"
    head = f"**{f.clause}**: {code(f.history)}{before}"
    return "\n\n".join([head, fenced("\n".join(f.drawing or f.found))])


def link(id_: str, spec: str) -> str:
    """A clause of SERVE; with the address of the chapters' folder, a link."""
    return f"[{id_}]({spec.rstrip('/').removesuffix('chapters')}serving/serve.md#{id_})" if spec else literal(id_)
