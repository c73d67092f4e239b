"""How a clause was judged in each run, for the page. Runs with the same words share one line."""

from __future__ import annotations

from collections.abc import Sequence

from kvreports.run.coverage import exercised
from kvreports.run.overview import Column, Row
from kvreports.safe_text import shortened
from kvspec.records.run import ClauseRecord

NAMED = 1
"""Tests that a page names for each; the record has them all."""


def judged(row: Row, columns: Sequence[Column]) -> list[tuple[str, str]]:
    """The adapters, with the results about each."""
    said: dict[str, list[str]] = {}
    for cell, column in zip(row.cells, columns, strict=True):
        if cell is not None:
            said.setdefault(_words(cell), []).append(shortened(column.label, 60))
    return [(", ".join(labels), words) for words, labels in said.items()]


def _words(cell: ClauseRecord) -> str:
    level = f", judged at {cell.judged_at}" if cell.judged_at else ""
    oracle = f" by the {cell.oracle}" if cell.judged_at and cell.oracle else ""
    oracle += f", on {', '.join(cell.kinds)}" if cell.kinds else ""
    reason = f" {shortened(cell.reason, 400)}" if cell.reason else ""
    seen = exercised(cell.exercised)
    steps = f" Steps that exercised it: {seen}." if seen else " No step exercised it."
    return f"{cell.verdict}{level}{oracle}.{reason}{steps}{_tests(cell.tests)}"


def _tests(tests: Sequence[str]) -> str:
    more = f" and {len(tests) - NAMED:,} more" if len(tests) > NAMED else ""
    return f" Tests: {shortened(', '.join(tests[:NAMED]), 200)}{more}." if tests else ""
