"""Failures as a page shows them: the drawing, the words, the trace to copy, the command to replay it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kvreports.drawing.svg import draw_svg
from kvreports.drawing.text import draw
from kvreports.run import findings, replay
from kvreports.run.overview import Column
from kvreports.safe_text import Html
from kvspec.records.run import Failure

DRAWN = 10
"""Failures of one run that a page draws; it lists the others by their message."""
LARGEST_TRACE = 100_000
"""Characters of a trace that a page holds."""


@dataclass(frozen=True)
class FailureDrawing:
    """One failure as the page shows it; `file` is where the report's folder has the trace."""

    anchor: str
    failure: Failure
    ids: list[str]
    """The clauses to read it for."""
    drawing: Html
    text: str
    trace: str
    file: str
    command: str


def drawings(column: Column) -> list[FailureDrawing]:
    """The failures of one run, as many as a page draws."""
    shown = findings.failures(column.record)[:DRAWN]
    return [_drawing(anchor(column, n), f, ids, column) for n, (f, ids) in enumerate(shown, 1)]


def undrawn(column: Column) -> list[tuple[Failure, list[str]]]:
    """The other failures of one run, each with its clauses."""
    return findings.failures(column.record)[DRAWN:]


def anchor(column: Column, n: int) -> str:
    """The anchor of the nth failure of a run."""
    return f"failure-{column.number}-{n}"


def anchors(column: Column) -> dict[str, str]:
    """For each clause, the anchor of its first drawn failure."""
    first: dict[str, str] = {}
    for n, (failure, ids) in enumerate(findings.failures(column.record)[:DRAWN], 1):
        for id_ in (*ids, *failure.clauses):
            first.setdefault(id_, anchor(column, n))
    return first


def _drawing(anchor: str, failure: Failure, ids: list[str], column: Column) -> FailureDrawing:
    file, command = replay.file(failure, column.record), replay.command(failure, column.record)
    title = f"The trace {failure.words[:200]}, drawn step by step; the same drawing follows as text"
    drawing = draw_svg(failure.steps, title, standalone=False)
    return FailureDrawing(anchor, failure, ids, drawing, draw(failure.steps), _trace(failure), file, command)


def _trace(failure: Failure) -> str:
    text = _dumps(failure.trace)
    if len(text) <= LARGEST_TRACE:
        return text
    return f"This trace has {len(text):,} characters, too many for this page; it is in the run record."


def _dumps(trace: dict[str, Any]) -> str:
    """One operation a line, as trace files are written."""
    ops = trace.get("ops")
    if not isinstance(ops, list) or not ops:
        return json.dumps(trace)
    head = json.dumps({k: v for k, v in trace.items() if k != "ops"})[:-1]
    lines = ",\n  ".join(json.dumps(op) for op in ops)
    return f'{head}{", " if len(trace) > 1 else ""}"ops": [\n  {lines}\n]}}'
