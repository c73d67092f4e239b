"""Run records as Markdown, as GitHub renders it."""

from __future__ import annotations

from collections.abc import Sequence

from kvreports import facts, inline_markdown
from kvreports.markdown import code, fenced, literal, table
from kvreports.run import diagnosis, residency
from kvreports.run.overview import Clauses, Column, Overview, Row, overview
from kvreports.run.standing import LESS, causes, groups, score, verdict
from kvreports.run.text import NONDETERMINISTIC, after, draw
from kvreports.safe_text import cleaned_record, line
from kvspec.records.run import Failure, Record

DRAWN = 10
"""Failures of one run that are drawn."""


def render(records: Sequence[Record], clauses: Clauses) -> str:
    """Summary, clause by adapter, failures drawn as text, and why clauses did not pass."""
    view = overview([cleaned_record(r) for r in records], clauses)
    parts = ["# KV cache conformance", _summary(view)]
    parts += [_partial(c) for c in view.columns if c.partial]
    parts += [_quick(c) for c in view.columns if "left out" in c.record.selection]
    parts += ["## Clauses", _matrix(view)] if view.chapters else []
    for column in view.columns:
        parts += _column(column)
    return "\n\n".join(p for p in parts if p) + "\n"


def _summary(view: Overview) -> str:
    rows = []
    for c in view.columns:
        counts = ", ".join(f"{n} {v}" for v, n in c.counts.items())
        values = [literal(v, 80) for k, v in facts.brief(c.record) if k not in ("machine", "version")]
        result = f"**{c.standing.words}**" + (" (partial run)" if c.partial else "")
        result += f", {score(c.record)}" if c.record.clauses else ""
        rows.append([literal(c.label), result, counts, *values])
    head = ["adapter", "result", "clauses", "device", "spec", "suite", "vectors", "seed", "run"]
    return table(head, rows) if rows else "There are no run records here."


def _partial(column: Column) -> str:
    why = literal(column.record.partial_reason) or "The run did not finish."
    return f"> **Partial run: {literal(column.label)}.** {why}"


def _quick(column: Column) -> str:
    left_out = literal(str(column.record.selection["left out"]))
    return f"> **Quick run: {literal(column.label)}.** It left out {left_out}."


def _matrix(view: Overview) -> str:
    rows = [
        [literal(r.id), _rule(r), r.clause.level, *_cells(r)] for chapter in view.chapters for r in chapter.rows
    ]
    return table(["clause", "rule", "level", *(literal(c.label, 60) for c in view.columns)], rows)


def _rule(row: Row) -> str:
    """The rule as its chapter has it. A record's own text of a rule may hold any Markdown, so it is escaped."""
    if row.known:
        return line(row.clause.text).replace("|", "\\|").replace("<", "&lt;")
    return literal(inline_markdown.text(row.clause.text))


def _cells(row: Row) -> list[str]:
    plain = {"PASS": "PASS", **{v: v.replace("_", "\\_") for v in (*LESS, "NOT_CLAIMED", "NOT_RUN")}}
    return ["" if c is None else plain.get(c.verdict, f"**{literal(c.verdict)}**") for c in row.cells]


def _column(column: Column) -> list[str]:
    reasons, failures = groups(column.record), column.record.failures
    parts = [f"## {literal(column.label)}"] if reasons or failures or column.record.problems else []
    parts += [f"- Problem: {literal(p)}" for p in column.record.problems[:20]]
    if reasons:
        rows = [[literal(g.verdict), literal(", ".join(g.ids), 2000), literal(g.reason)] for g in reasons]
        parts.append(table(["verdict", "clauses", "reason"], rows))
    for cause, of in causes(column.record).items():
        parts += [f"**{cause.capitalize()}**: {len(of)} of {len(failures)} failures."]
        parts += [_failure(f) for f in of if f in failures[:DRAWN]]
    if len(failures) > DRAWN:
        parts.append(f"{len(failures) - DRAWN} more failures are in the run record.")
    costs = [[literal(cell, 60) for cell in row] for row in residency.rows(column.record)]
    if costs:
        parts += ["### What operations cost" if parts else f"## {literal(column.label)}: what operations cost"]
        parts.append(table(residency.HEAD, costs))
    return parts


def _failure(failure: Failure) -> str:
    parts = [f"### {literal(verdict(failure))} {literal(', '.join(failure.clauses))}"]
    parts += [f"> {literal(inline_markdown.text(p), 900)}" for p in diagnosis.paragraphs(failure)]
    parts += [literal(failure.message, 1500), code(failure.words, 1500)]
    parts += [] if failure.deterministic else [NONDETERMINISTIC]
    parts += [literal(text, 1500) for text in after(failure)]
    return "\n\n".join([*parts, fenced(draw(failure.steps))])
