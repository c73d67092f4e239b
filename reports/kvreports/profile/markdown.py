"""A profile as Markdown. Every text of the record is escaped."""

from __future__ import annotations

from kvreports import markdown
from kvreports.markdown import literal
from kvreports.profile import comparison, figures, findings, table
from kvreports.safe_text import cleaned
from kvspec.records.profile import Profile


def render(record: Profile, before: Profile | None = None) -> str:
    """What was found, what changed since a profile before, the limits, a table for each operation, and what was
    left out."""
    record = cleaned(record)
    parts = [f"# Profile: {literal(table.name(record))}", literal(table.headline(record), 400)]
    parts.append("\n".join(f"- {literal(sentence, 400)}" for sentence in findings.sentences(record)))
    parts += [_table(findings.HEAD, findings.rows(record))] if findings.slow(record) else []
    parts += [_compared(cleaned(before), record)] if before is not None else []
    parts += [f"A profile only measures: nothing passes or fails. {table.READING}"]
    parts += [f"> **Partial.** {literal(record.partial_reason)}"] if record.partial else []
    parts.append(_table(table.LIMITS, table.limits(record)))
    peers = figures.peers(record)
    head = (*table.HEAD, *(f"/ {literal(peer)}" for peer in peers))
    for operation, cases in figures.by_operation(record).items():
        rows = [table.row(case, peers)[1:] for case in cases]
        parts += [f"## {literal(operation)}", _table(head[1:], rows)]
    parts += [f"- Not measured: {literal(s.id)}: {literal(s.reason, 200)}" for s in record.skipped]
    parts += [f"- No peer: {literal(p.name)}: {literal(p.missing, 200)}" for p in record.peers if p.missing]
    return "\n\n".join(parts) + "\n"


def _compared(before: Profile, now: Profile) -> str:
    found = _table(comparison.HEAD, comparison.rows(before, now))
    return f"## Since {literal(before.started)}\n\n{literal(comparison.summary(before, now), 400)}\n\n{found}"


def _table(head: tuple[str, ...], rows: list[list[str]]) -> str:
    return markdown.table(head, [[literal(cell, 80) for cell in row] for row in rows])
