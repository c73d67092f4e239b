"""Records for a terminal: the result first, then the reasons."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from textwrap import fill

from msgspec import UNSET
from tabulate import tabulate

from kvreports import inline_markdown
from kvreports.drawing.text import draw
from kvreports.run import diagnosis, replay, residency, shut_out
from kvreports.run.findings import Finding, findings
from kvreports.run.overview import Chapter, Clauses, Column, overview
from kvreports.run.standing import groups, in_words, unclaimed_chapters
from kvreports.safe_text import cleaned_record, line, shortened
from kvspec.records.run import VERDICTS, Failure, Record

NONDETERMINISTIC = "This did not happen on every replay: the adapter is nondeterministic."


def render(records: Sequence[Record], clauses: Clauses, width: int | None = None, unclaimed: bool = False) -> str:
    """Each run: its result, where to look first and the trace that shows it, the other clauses that broke, then
    counts by chapter. `unclaimed` also lists every clause that is not claimed, with the reason."""
    view = overview([cleaned_record(r) for r in records], clauses)
    width = width or min(shutil.get_terminal_size((100, 24)).columns, 140)
    parts = [
        "\n\n".join(filter(None, _column(i, view.chapters, c, clauses, width, unclaimed)))
        for i, c in enumerate(view.columns)
    ]
    return "\n\n".join(parts) + "\n" if parts else "no records\n"


def _column(
    i: int, chapters: list[Chapter], column: Column, clauses: Clauses, width: int, unclaimed: bool
) -> Iterator[str]:
    record, found = column.record, findings(column.record)
    yield _headline(column)
    if found:
        yield _first(found[0], record, clauses, width)
        yield _others(found, width)
    yield _chapters(i, column, chapters, width)
    yield _not_passed(record, width, unclaimed)
    yield _shut_out(record, width, unclaimed)
    costs = [fill(line(cost), width, subsequent_indent="  ") for cost in residency.token(record)]
    yield "\n".join(["a token of a steady decode costs", *costs]) if costs else ""
    yield fill(f"note: {line(record.grew)}", width, subsequent_indent="  ") if record.grew else ""
    yield from (fill(f"problem: {line(p)}", width, subsequent_indent="  ") for p in record.problems[:20])


def _headline(column: Column) -> str:
    because = line(shortened(column.standing.because, 300))
    parts = [f"{line(column.label)}: {column.standing.words}{f' ({because})' if because else ''}"]
    if left_out := column.record.selection.get("left out"):
        parts.append(f"QUICK RUN, which left out: {line(str(left_out))}")
    if column.partial:
        parts.append(f"PARTIAL RUN: {line(column.record.partial_reason) or 'it did not finish'}")
    return "\n".join(parts)


def _first(finding: Finding, record: Record, clauses: Clauses, width: int) -> str:
    """The diagnosis; the clause to look at and its rule; the trace that shows it, and how to go on."""
    failed, ids = finding.failure, ", ".join(map(line, finding.ids)) or "no clause"
    texts = [inline_markdown.text(line(clauses[i].text)) for i in finding.ids[:1] if i in clauses]
    head = [
        f"{finding.title} {ids}: {finding.verdict}, {line(finding.cause)}",
        *(_indented(t, width) for t in texts),
    ]
    if failed is None or finding.verdict == "XFAIL":
        head.append(_indented(line(shortened(finding.message, 600)), width))
    if failed is None:
        return "\n".join(head)
    named = [_indented(text, width) for text in _diagnosis(failed)]
    parts = [*named, ""] if failed.diagnosis else []
    parts += [*head, "", failure(failed, width), *([] if failed.diagnosis else ["", *named])]
    return "\n".join([*parts, "", *_next(finding, record), *_entry(failed)])


def _entry(failed: Failure) -> Iterator[str]:
    """What makes the failure known, once it is reported."""
    if failed.entry is not UNSET:
        yield from ("", "to expect it once you have reported it, write into kvconform.toml:")
        yield from (f"  {line(text)}" for text in failed.entry.splitlines())


def _diagnosis(failed: Failure) -> list[str]:
    return [line(inline_markdown.text(shortened(p, 900))) for p in diagnosis.paragraphs(failed)]


def _indented(text: str, width: int) -> str:
    return fill(text, width, initial_indent="  ", subsequent_indent="  ")


def _next(finding: Finding, record: Record) -> Iterator[str]:
    """The commands that explain the clause and replay the trace. A trace that words cannot say is in the report."""
    if finding.ids:
        yield f"kvconform explain {line(finding.ids[0])}"
    if finding.failure is not None and replay.in_words(finding.failure):
        yield line(replay.command(finding.failure, record))


def failure(failed: Failure, width: int = 100) -> str:
    """One failure: the trace in words, what differed, and the drawing."""
    texts = [line(shortened(failed.words, 600)), line(shortened(failed.message, 600))]
    texts += [] if failed.deterministic else [NONDETERMINISTIC]
    texts += after(failed)
    return "\n".join([*(_indented(text, width) for text in texts), "", draw(failed.steps)])


def after(failed: Failure) -> list[str]:
    """The trace that has to run first; nothing where the failure needs none."""
    if failed.after is UNSET:
        return []
    return [f"It fails only after another trace in the same process: {line(shortened(failed.after.words, 600))}"]


def _others(found: Sequence[Finding], width: int) -> str:
    """Every other clause that broke, once, by what went wrong, with the trace that shows it."""
    first, *others = found
    rows = [[line(f.cause), ", ".join(map(line, f.ids)), _shown(f, first)] for f in others]
    widths = [20, max(16, width // 4), max(24, width - width // 4 - 26)]
    head = ["also broken", "clauses", "shown by"]
    return tabulate(rows, head, tablefmt="simple", maxcolwidths=widths) if rows else ""


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
    table = tabulate(rows, ["chapter", "clauses", *verdicts], tablefmt="simple") if rows else ""
    said = f"not claimed: {', '.join(map(line, left_out))} ({in_words(sum(left_out.values()))})" if left_out else ""
    said = fill(said, width, subsequent_indent="  ")
    return "\n\n".join(filter(None, (table, said)))


def _shut_out(record: Record, width: int, unclaimed: bool) -> str:
    """The checks that the claims left nothing to judge, by what they take; all of them only on request."""
    most = len(record.shut_out) if unclaimed else shut_out.SHOWN
    rows = [[line(shortened(cell, 2000)) for cell in row] for row in shut_out.rows(record, most)]
    widths = [max(24, width // 3), max(24, width - width // 3 - 4)]
    return tabulate(rows, shut_out.HEAD, tablefmt="simple", maxcolwidths=widths) if rows else ""


def _not_passed(record: Record, width: int, unclaimed: bool) -> str:
    """Why clauses neither passed nor broke; clauses that are not claimed only on request."""
    rows = [
        [g.verdict, ", ".join(map(line, g.ids)), line(shortened(g.reason, 400)) or "no reason given"]
        for g in groups(record)
        if unclaimed or g.verdict != "NOT_CLAIMED"
    ]
    widths = [None, max(16, width // 4), max(24, width - width // 4 - 18)]
    return tabulate(rows, ["verdict", "clauses", "reason"], tablefmt="simple", maxcolwidths=widths) if rows else ""
