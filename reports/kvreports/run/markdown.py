"""Run records as Markdown, as GitHub renders it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import UNSET

from kvreports import facts, inline_markdown
from kvreports.drawing.text import draw
from kvreports.markdown import cited, code, fenced, literal, table
from kvreports.run import beside, coverage, diagnosis
from kvreports.run.findings import Finding, failures, findings
from kvreports.run.overview import Clauses, Column, Overview, Row, overview
from kvreports.run.standing import LESS, groups, in_words, unclaimed_chapters, verdict
from kvreports.run.text_failure import NONDETERMINISTIC, after
from kvreports.safe_text import cleaned_record, line
from kvspec.records.run import Failure, Record

DRAWN = 10
"""Failures of one run that are drawn."""


def render(records: Sequence[Record], clauses: Clauses, spec: str = "") -> str:
    """Write a summary, then for each adapter its failures, drawn, and why clauses did not pass. A table of clause
    by adapter ends it.

    With `spec`, the address of the chapters' folder, the ids of clauses are links to their anchors.
    """
    view = overview([cleaned_record(r) for r in records], clauses)
    parts = ["# KV cache conformance", _summary(view)]
    parts += [_partial(c) for c in view.columns if c.partial]
    parts += [_quick(c) for c in view.columns if "left out" in c.record.selection]
    for column in view.columns:
        parts += _column(column, clauses, spec)
    parts += ["## Clauses", _matrix(view, spec)] if view.chapters else []
    return "\n\n".join(p for p in parts if p) + "\n"


def _summary(view: Overview) -> str:
    rows = []
    for c in view.columns:
        counts = ", ".join(f"{n} {v}" for v, n in c.counts.items())
        values = [literal(v, 80) for k, v in facts.brief(c.record) if k not in ("machine", "version")]
        result = f"**{c.standing.words}**" + (" (partial run)" if c.partial else "")
        result += f": {literal(c.standing.because, 300)}" if c.standing.because else ""
        rows.append([literal(c.label), result, counts, *values])
    head = ["adapter", "result", "clauses", "device", "spec", "suite", "vectors", "seed", "run"]
    return table(head, rows) if rows else "There are no run records here."


def _partial(column: Column) -> str:
    why = literal(column.record.partial_reason) or "The run did not finish."
    return f"> **Partial run: {literal(column.label)}.** {why}"


def _quick(column: Column) -> str:
    left_out = literal(str(column.record.selection["left out"]))
    return f"> **Quick run: {literal(column.label)}.** It left out {left_out}."


def _matrix(view: Overview, spec: str) -> str:
    """The clauses that an adapter claims, then a line for each chapter with others."""
    shown = [row for chapter in view.chapters for row in chapter.rows if row.claimed]
    rows = [[cited([r.id], spec), _rule(r, spec), r.clause.level, *_cells(r)] for r in shown]
    head = ["clause", "rule", "level", *(literal(c.label, 60) for c in view.columns)]
    rest = [f"- {literal(c.name)}: {in_words(c.unclaimed)} not claimed" for c in view.chapters if c.unclaimed]
    return "\n\n".join(filter(None, [table(head, rows) if rows else "", "\n".join(rest)]))


_BESIDE = re.compile(r"\[([^\]\[]+)\]\(([^():\s]+)\)")
"""A link to a chapter beside the one that a rule is from."""


def _rule(row: Row, spec: str) -> str:
    """The rule as its chapter has it; its links lead into the folder `spec`, or are left out without one. A
    record's own text of a rule may hold any Markdown, so it is escaped."""
    if row.known:
        rule = _BESIDE.sub(rf"[\1]({spec.rstrip('/')}/\2)" if spec else r"\1", line(row.clause.text))
        return rule.replace("|", "\\|").replace("<", "&lt;")
    return literal(inline_markdown.text(row.clause.text))


def _cells(row: Row) -> list[str]:
    plain = {"PASS": "PASS", **{v: v.replace("_", "\\_") for v in (*LESS, "NOT_CLAIMED", "NOT_RUN")}}
    return ["" if c is None else plain.get(c.verdict, f"**{literal(c.verdict)}**") for c in row.cells]


def _column(column: Column, clauses: Clauses, spec: str) -> list[str]:
    """What is wrong, its failures drawn, why other clauses did not pass, which large sizes were met, and what
    operations cost."""
    record, label = column.record, literal(column.label)
    parts = [f"- Note: {literal(record.grew)}"] if record.grew else []
    parts += [f"- Problem: {literal(p)}" for p in record.problems[:20]]
    parts += _wrong(findings(record), clauses, spec)
    shown = failures(record)
    parts += [part for failed, ids in shown[:DRAWN] for part in _failure(failed, ids, spec)]
    if len(shown) > DRAWN:
        parts.append(f"{len(shown) - DRAWN} more failures are in the run record.")
    parts += _not_passed(column, spec)
    missing = [[literal(cell, 400) for cell in row] for row in beside.shut_out(record)]
    parts += ["### What the claims shut out", table(beside.SHUT_OUT, missing)] if missing else []
    large = [[literal(cell, 400) for cell in row] for row in coverage.sizes(record)]
    parts += ["### Large sizes", table(coverage.LARGE, large)] if large else []
    costs = [[literal(cell, 60) for cell in row] for row in beside.costs(record)]
    parts += ["### What operations cost", table(beside.COSTS, costs)] if costs else []
    return [f"## {label}", *parts] if parts else []


def _wrong(found: list[Finding], clauses: Clauses, spec: str) -> list[str]:
    """Where to look first, then every other clause that broke, once, by what went wrong."""
    if not found:
        return []
    first, *others = found
    texts = [line(inline_markdown.text(clauses[i].text)) for i in first.ids[:1] if i in clauses]
    parts = [f"**{first.title} {cited(first.ids, spec, 600)}**: {literal(first.verdict)}, {literal(first.cause)}."]
    parts += [f"> {literal(text, 900)}" for text in texts]
    parts += [literal(first.message)] if first.verdict == "XFAIL" or first.failure is None else []
    rows = [[literal(f.cause), cited(f.ids, spec), _shown(f, first)] for f in others]
    return [*parts, table(["also broken", "clauses", "shown by"], rows)] if rows else parts


def _shown(finding: Finding, first: Finding) -> str:
    if finding.failure is None:
        return literal(finding.message)
    if finding.failure is first.failure and finding.verdict != "XFAIL":
        return "the same trace"
    return f"{literal(finding.failure.words, 120)}: {literal(finding.message, 300)}"


def _not_passed(column: Column, spec: str) -> list[str]:
    """Why clauses neither passed nor broke; those that are not claimed are folded."""
    rows = [(g, [literal(g.verdict), cited(g.ids, spec), literal(g.reason)]) for g in groups(column.record)]
    head = ["verdict", "clauses", "reason"]
    open_rows = [row for g, row in rows if g.verdict != "NOT_CLAIMED"]
    folded = [row for g, row in rows if g.verdict == "NOT_CLAIMED"]
    parts = [table(head, open_rows)] if open_rows else []
    if left_out := unclaimed_chapters(column.record):
        parts.append(f"Not claimed: {literal(', '.join(left_out))} ({in_words(sum(left_out.values()))}).")
    if folded:
        count = sum(len(g.ids) for g, _ in rows if g.verdict == "NOT_CLAIMED")
        summary = f"<summary>{count} clauses of its own chapters are not claimed</summary>"
        parts.append(f"<details>{summary}\n\n{table(head, folded)}\n\n</details>")
    return parts


def _failure(failure: Failure, ids: list[str], spec: str) -> list[str]:
    parts = [f"### {literal(verdict(failure))} {cited(ids, spec, 600)}"]
    parts += [f"> {literal(inline_markdown.text(p), 900)}" for p in diagnosis.paragraphs(failure)]
    parts += [literal(failure.message, 1500), code(failure.words, 1500)]
    parts += [] if failure.deterministic else [NONDETERMINISTIC]
    parts += [literal(text, 1500) for text in after(failure)]
    parts.append(fenced(draw(failure.steps)))
    known = [] if failure.entry is UNSET else ["Once it is reported, in `kvconform.toml`:", fenced(failure.entry)]
    return [*parts, *known]
