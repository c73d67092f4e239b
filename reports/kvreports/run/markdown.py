"""Records as Markdown, as GitHub renders it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tabulate import tabulate

from kvreports import facts, inline_markdown
from kvreports.clauses import Clauses
from kvreports.run import diagnosis, residency
from kvreports.run.overview import Column, Overview, Row, overview
from kvreports.run.standing import groups
from kvreports.run.text import draw
from kvreports.safe_text import cleaned_record, line, shortened
from kvspec.records.run import Failure, Record

DRAWN = 20
"""Failures of one run that are drawn."""

_MARKS = re.compile(r"([\\`*_\[\]<>|#~@$&])")


def render(records: Sequence[Record], clauses: Clauses) -> str:
    """Summary, clause by adapter, failures drawn as text, and why clauses did not pass."""
    laid = overview([cleaned_record(r) for r in records], clauses)
    parts = ["# KV cache conformance", _summary(laid)]
    parts += [_partial(c) for c in laid.columns if c.partial]
    parts += ["## Clauses", _matrix(laid)] if laid.chapters else []
    for column in laid.columns:
        parts += _column(column)
    return "\n\n".join(p for p in parts if p) + "\n"


def literal(text: str, limit: int = 600) -> str:
    """Text that Markdown shows as it is, in one line."""
    return _MARKS.sub(r"\\\1", shortened(line(text), limit))


def code(text: str, limit: int = 600) -> str:
    """Text as code, whatever backticks it holds; not for cells of a table."""
    text = shortened(line(text), limit)
    ticks = "`" * (_longest(text) + 1)
    pad = " " if "`" in text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _longest(text: str) -> int:
    return max((len(m) for m in re.findall("`+", text)), default=0)


def _fenced(text: str) -> str:
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}text\n{text}\n{fence}"


def _summary(laid: Overview) -> str:
    rows = []
    for c in laid.columns:
        counted = ", ".join(f"{n} {v}" for v, n in c.counts.items())
        told = {k: v for k, v in facts.brief(c.record) if k not in ("machine", "version")}
        said = f"**{c.standing.words}**" + (" (partial run)" if c.partial else "")
        rows.append([literal(c.label), said, counted, *(literal(v, 80) for v in told.values())])
    head = ["adapter", "result", "clauses", "device", "spec", "suite", "vectors", "seed", "run"]
    return (
        tabulate(rows, head, tablefmt="github", disable_numparse=True) if rows else "There are no run records here."
    )


def _partial(column: Column) -> str:
    why = literal(column.record.partial_reason) or "The run did not finish."
    return f"> **Partial run: {literal(column.label)}.** {why}"


def _matrix(laid: Overview) -> str:
    rows = []
    for chapter in laid.chapters:
        rows += [[literal(r.id), _rule(r), r.clause.level, *_cells(r)] for r in chapter.rows]
    head = ["clause", "rule", "level", *(literal(c.label, 60) for c in laid.columns)]
    return tabulate(rows, head, tablefmt="github", disable_numparse=True)


def _rule(row: Row) -> str:
    """The rule as its chapter has it; what a record says of a rule is not trusted with Markdown."""
    if row.known:
        return line(row.clause.text).replace("|", "\\|").replace("<", "&lt;")
    return literal(inline_markdown.text(row.clause.text))


def _cells(row: Row) -> list[str]:
    marks = {"PASS": "PASS", "UNSUPPORTED": "UNSUPPORTED", "NOT_RUN": "NOT\\_RUN"}
    return ["" if c is None else marks.get(c.verdict, f"**{literal(c.verdict)}**") for c in row.cells]


def _column(column: Column) -> list[str]:
    found, failures = groups(column.record), column.record.failures
    parts = [f"## {literal(column.label)}"] if found or failures or column.record.problems else []
    parts += [f"- Problem: {literal(p)}" for p in column.record.problems[:20]]
    if found:
        rows = [[literal(g.verdict), literal(", ".join(g.ids), 2000), literal(g.reason)] for g in found]
        parts.append(tabulate(rows, ["verdict", "clauses", "reason"], tablefmt="github", disable_numparse=True))
    parts += [_failure(f) for f in failures[:DRAWN]]
    if len(failures) > DRAWN:
        parts.append(f"{len(failures) - DRAWN} more failures are in the run record.")
    costs = [[literal(cell, 60) for cell in row] for row in residency.rows(column.record)]
    if costs:
        parts += ["### What operations cost" if parts else f"## {literal(column.label)}: what operations cost"]
        parts.append(tabulate(costs, residency.HEAD, tablefmt="github", disable_numparse=True))
    return parts


def _failure(failed: Failure) -> str:
    head = f"### {literal(failed.verdict)} {literal(', '.join(failed.clauses))}"
    parts = [head, *(f"> {literal(inline_markdown.text(p), 900)}" for p in diagnosis.told(failed))]
    parts += [literal(failed.message, 1500), code(failed.words, 1500)]
    if not failed.deterministic:
        parts.append("This did not happen on every replay: the adapter is nondeterministic.")
    return "\n\n".join([*parts, _fenced(draw(failed.steps))])
