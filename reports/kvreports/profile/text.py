"""A profile for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from tabulate import tabulate

from kvreports.profile import comparison, figures, findings, table
from kvreports.safe_text import cleaned, line, shortened
from kvspec.records.profile import Profile


def render(record: Profile, before: Profile | None = None) -> str:
    """What was found, what changed since a profile before, the limits, a row for each measurement, and what was
    left out."""
    record = cleaned(record)
    parts = [table.headline(record), *(["PARTIAL: " + line(record.partial_reason)] if record.partial else [])]
    parts.append("\n".join(map(line, findings.sentences(record))))
    parts += [_rows(findings.rows(record), findings.HEAD)] if findings.slow(record) else []
    parts += [_compared(cleaned(before), record)] if before is not None else []
    parts.append(table.READING)
    limits = table.limits(record)
    parts += [tabulate(limits, table.LIMITS, disable_numparse=True)] if limits else []
    head = [*table.HEAD, *(f"/ {line(peer)}" for peer in figures.peers(record))]
    rows = table.rows(record)
    parts.append(tabulate(rows, head, disable_numparse=True) if rows else "nothing measured")
    parts.append("\n".join(_left_out(record)))
    return "\n\n".join(filter(None, parts)) + "\n"


def _left_out(record: Profile) -> Iterator[str]:
    """Cases that were not measured, a line for each reason, and peers that took no part."""
    for reason, ids in table.skipped(record.skipped):
        cases = line(ids[0]) if len(ids) == 1 else f"{len(ids)} cases, such as {line(ids[0])}"
        yield f"not measured: {cases}: {line(shortened(reason, 200))}"
    yield from (f"no peer: {line(p.name)}: {line(p.missing)}" for p in record.peers if p.missing)


def _compared(before: Profile, now: Profile) -> str:
    return f"{comparison.summary(before, now)}\n\n{_rows(comparison.rows(before, now), comparison.HEAD)}"


def _rows(rows: list[list[str]], head: tuple[str, ...]) -> str:
    return tabulate([[line(cell) for cell in row] for row in rows], head, disable_numparse=True)
