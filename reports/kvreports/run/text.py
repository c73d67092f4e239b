"""Records for a terminal, which shows what is printed last: tables first, then the trace, then the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvreports import terminal
from kvreports.run import beside
from kvreports.run.findings import Finding, findings
from kvreports.run.overview import Chapter, Clauses, Column, overview
from kvreports.run.standing import groups, in_words, unclaimed_chapters
from kvreports.safe_text import cleaned_record, line, shortened
from kvreports.terminal import paragraph
from kvspec.records.run import VERDICTS, Record


def render(records: Sequence[Record], clauses: Clauses, width: int | None = None, unclaimed: bool = False) -> str:
    """Write for each run what was not judged, counts by chapter, every other clause that broke, where to look
    first and the trace that shows it. The result in one line, and what to do next, come last. `unclaimed` also
    lists every clause that is not claimed, with the reason."""
    view = overview([cleaned_record(r) for r in records], clauses)
    width = width or terminal.width()
    parts = [
        "\n\n".join(filter(None, _column(i, view.chapters, c, clauses, width, unclaimed)))
        for i, c in enumerate(view.columns)
    ]
    return "\n\n".join(parts) + "\n" if parts else "no records\n"


def _column(
    i: int, chapters: list[Chapter], column: Column, clauses: Clauses, width: int, unclaimed: bool
) -> Iterator[str]:
    record, found = column.record, findings(column.record)
    yield _not_passed(record, width, unclaimed)
    yield _shut_out(record, width, unclaimed)
    yield from _notes(record, width)
    yield _chapters(i, column, chapters, width)
    if not found:
        yield _headline(column, width)
        return
    from kvreports.run import text_failure  # it reads what draws a trace

    yield _others(found, width)
    yield from text_failure.finding(found[0], clauses, width)
    yield _headline(column, width)
    yield "\n".join(text_failure.commands(found[0], record))


def _notes(record: Record, width: int) -> Iterator[str]:
    """What a decode costs, what grew, and the problems of the run."""
    costs = [paragraph(line(cost), width, rest="  ") for cost in beside.token(record)]
    yield "\n".join(["a token of a steady decode costs", *costs]) if costs else ""
    yield paragraph(f"note: {line(record.grew)}", width, rest="  ") if record.grew else ""
    yield from (paragraph(f"problem: {line(p)}", width, rest="  ") for p in record.problems[:20])


def _headline(column: Column, width: int) -> str:
    """What was judged and whether it conforms; what a quick or an unfinished run left out."""
    because = line(shortened(column.standing.because, 300))
    parts = [f"{line(column.label)}: {column.standing.words}{f' ({because})' if because else ''}"]
    if left_out := column.record.selection.get("left out"):
        parts.append(f"QUICK RUN, which left out: {line(str(left_out))}")
    if column.partial:
        parts.append(f"PARTIAL RUN: {line(column.record.partial_reason) or 'it did not finish'}")
    return "\n".join(paragraph(part, width, rest="  ") for part in parts)


def _others(found: Sequence[Finding], width: int) -> str:
    """Every other clause that broke, once, by what went wrong, with the trace that shows it."""
    first, *others = found
    rows = [[line(f.cause), ", ".join(map(line, f.ids)), _shown(f, first)] for f in others]
    widths = [20, max(16, width // 4), max(20, width - width // 4 - 24)]
    return terminal.table(["also broken", "clauses", "shown by"], rows, widths)


def _shown(finding: Finding, first: Finding) -> str:
    message = line(shortened(finding.message, 300)) or "no reason given"
    if finding.failure is None:
        return message
    same = finding.failure is first.failure and finding.verdict != "XFAIL"
    return "the same trace" if same else f"{line(shortened(finding.failure.words, 120))}: {message}"


def _chapters(i: int, column: Column, chapters: list[Chapter], width: int) -> str:
    """Counts by chapter; the chapters that the adapter does not declare are one line together."""
    left_out = unclaimed_chapters(column.record)
    counts = {c.name: found for c in chapters if c.name not in left_out and (found := c.counts(i))}
    verdicts = [v for v in VERDICTS if any(v in found for found in counts.values())]
    rows = [[name, sum(found.values()), *(found.get(v, "") for v in verdicts)] for name, found in counts.items()]
    table = terminal.counts(["chapter", "clauses", *verdicts], rows, width)
    said = f"not claimed: {', '.join(map(line, left_out))} ({in_words(sum(left_out.values()))})" if left_out else ""
    return "\n\n".join(filter(None, (table, paragraph(said, width, rest="  "))))


def _shut_out(record: Record, width: int, unclaimed: bool) -> str:
    """The checks that the claims left nothing to judge, by what they take; all of them only on request."""
    most = len(record.shut_out) if unclaimed else beside.SHOWN
    rows = [[line(shortened(cell, 2000)) for cell in row] for row in beside.shut_out(record, most)]
    return terminal.table(beside.SHUT_OUT, rows, [max(24, width // 3), max(24, width - width // 3 - 2)])


def _not_passed(record: Record, width: int, unclaimed: bool) -> str:
    """Why clauses neither passed nor broke; clauses that are not claimed only on request."""
    rows = [
        [g.verdict, ", ".join(map(line, g.ids)), line(shortened(g.reason, 400)) or "no reason given"]
        for g in groups(record)
        if unclaimed or g.verdict != "NOT_CLAIMED"
    ]
    longest = max((len(row[0]) for row in rows), default=0)
    widths = [longest, max(16, width // 4), max(20, width - width // 4 - longest - 4)]
    return terminal.table(["verdict", "clauses", "reason"], rows, widths)
