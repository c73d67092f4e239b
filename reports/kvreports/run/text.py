"""Records and traces for a terminal."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from textwrap import fill

from msgspec import UNSET
from tabulate import tabulate

from kvreports import inline_markdown
from kvreports.drawing.frames import Cell, Frame, Strip, frames
from kvreports.run import diagnosis, replay, residency
from kvreports.run.overview import Chapter, Clauses, Column, overview
from kvreports.run.standing import Group, causes, groups, score, suspects, verdict
from kvreports.safe_text import cleaned_record, line, shortened
from kvspec.records.run import VERDICTS, Failure, Record, StepRecord

NONDETERMINISTIC = "This did not happen on every replay: the adapter is nondeterministic."
MARKS = {"dead": "†", "missing": "", "hidden": "", "gap": ""}


def render(records: Sequence[Record], clauses: Clauses, width: int | None = None) -> str:
    """The summary of a run: counts by chapter, what did not pass and why, the shortest failing trace drawn."""
    view = overview([cleaned_record(r) for r in records], clauses)
    width = width or min(shutil.get_terminal_size((100, 24)).columns, 140)
    parts = [_column(i, c, view.chapters, width) for i, c in enumerate(view.columns)]
    return "\n\n".join(parts) + "\n" if parts else "no records\n"


def _column(i: int, column: Column, chapters: list[Chapter], width: int) -> str:
    record = column.record
    parts = [_headline(column), _chapters(i, column, chapters), _reasons(record, width), _suspects(record, width)]
    if record.failures:
        parts += [_causes(record), failure(record.failures[0], column.name, width), _replay(record)]
    costs = [fill(line(cost), width, subsequent_indent="  ") for cost in residency.token(record)]
    parts.append("\n".join(["a token of a steady decode costs", *costs]) if costs else "")
    parts += [fill(f"problem: {line(p)}", width, subsequent_indent="  ") for p in record.problems[:20]]
    return "\n\n".join(p for p in parts if p)


def _headline(column: Column) -> str:
    out = f"{line(column.label)}: {column.standing.words}"
    if column.standing.because:
        out += f" ({line(shortened(column.standing.because, 300))})"
    out += f"\n{score(column.record)}" if column.record.clauses else ""
    if left_out := column.record.selection.get("left out"):
        out += f"\nQUICK RUN, which left out: {line(str(left_out))}"
    if column.partial:
        out += f"\nPARTIAL RUN: {line(column.record.partial_reason) or 'it did not finish'}"
    return out


def _chapters(i: int, column: Column, chapters: list[Chapter]) -> str:
    verdicts = [v for v in VERDICTS if v in column.counts]
    rows = []
    for chapter in chapters:
        found = chapter.counts(i)
        if found:
            rows.append([chapter.name, sum(found.values()), *(found.get(v, 0) or "" for v in verdicts)])
    if len(rows) > 1:
        rows.append(["all", sum(column.counts.values()), *(column.counts[v] for v in verdicts)])
    return tabulate(rows, ["chapter", "clauses", *verdicts], tablefmt="simple") if rows else ""


def _suspects(record: Record, width: int) -> str:
    """The clauses that the traces point at; `kvconform.runner.tally` computes how strongly."""
    ranked = suspects(record)
    named = ", ".join(f"{line(c.id)} ({c.suspicion:.2f})" for c in ranked[:5])
    return fill(f"look first at: {named}", width, subsequent_indent="  ") if named else ""


def _reasons(record: Record, width: int) -> str:
    found = groups(record)
    unclaimed = {g.ids[0]: chapter for g in found if (chapter := _unclaimed(g, record))}
    reasons = [g for g in found if g.ids[0] not in unclaimed]
    rows = [
        [g.verdict, ", ".join(map(line, g.ids)), line(shortened(g.reason, 400)) or "no reason given"]
        for g in reasons
    ]
    if unclaimed:
        chapters = ", ".join(map(line, unclaimed.values()))
        many = "s" * (len(unclaimed) > 1)
        said = f"the adapter does not declare the chapter{many} {chapters}"
        rows.append(["NOT_CLAIMED", f"{len(unclaimed)} chapter{many}", said])
    widths = [None, max(16, width // 4), max(24, width - width // 4 - 18)]
    return tabulate(rows, ["verdict", "clauses", "reason"], tablefmt="simple", maxcolwidths=widths) if rows else ""


def _unclaimed(group: Group, record: Record) -> str:
    """The chapter that the clauses of a group belong to, if the adapter does not claim it; else nothing."""
    claims = record.adapter.get("chapters") or ()
    chapters = {c.chapter for c in record.clauses if c.id in group.ids}
    whole = group.verdict == "NOT_CLAIMED" and len(chapters) == 1 and not chapters & set(claims)
    return chapters.pop() if whole else ""


def _causes(record: Record) -> str:
    """The failures by cause: how many there are of each, and the shortest."""
    rows = []
    for cause, of in causes(record).items():
        clauses, words = ", ".join(map(line, of[0].clauses[:3])), line(shortened(of[0].words, 60))
        rows.append([cause, len(of), clauses, words])
    return tabulate(rows, ["what went wrong", "failures", "first of", "the shortest"], tablefmt="simple")


def failure(failed: Failure, adapter: str, width: int = 100) -> str:
    """One failure: what broke, the trace in words and drawn."""
    head = f"{verdict(failed)} {', '.join(map(line, failed.clauses))} on {line(adapter)}, the shortest trace:"
    texts = [line(inline_markdown.text(shortened(p, 900))) for p in diagnosis.paragraphs(failed)]
    texts += [line(shortened(failed.words, 600)), line(shortened(failed.message, 600))]
    texts += [] if failed.deterministic else [NONDETERMINISTIC]
    texts += after(failed)
    paragraphs = [fill(t, width, initial_indent="  ", subsequent_indent="  ") for t in texts]
    return "\n".join([head, *paragraphs, "", draw(failed.steps)])


def after(failed: Failure) -> list[str]:
    """The trace that has to run first; nothing where the failure needs none."""
    if failed.after is UNSET:
        return []
    return [f"It fails only after another trace in the same process: {line(shortened(failed.after.words, 600))}"]


def _replay(record: Record) -> str:
    """How to replay the first failure; a trace that words do not say is in the report's folder."""
    first = record.failures[0]
    return line(replay.command(first, record.command)) if replay.in_words(first) else ""


def draw(steps: Sequence[StepRecord]) -> str:
    """The trace step by step, as text: what was expected and found, differing slots in [brackets]."""
    parts = frames(steps)
    text = [_frame(f) for f in parts]
    return "\n".join([*text, *_legend("\n".join(text), any(f.differs for f in parts))])


def _legend(drawing: str, differs: bool) -> list[str]:
    marks = {"†": "x† dead: rolled back", "|": "| oldest row of a wrapped ring follows"}
    marks = {"[": "[x] differs", **marks} if differs else marks
    present = [words for mark, words in marks.items() if mark in drawing]
    return ["", "  " + "   ".join(present)] if present else []


def _frame(frame: Frame) -> str:
    if not frame.number:
        return f"     ({frame.do})"
    mark = "!" if frame.differs else " "
    facts = "   ".join(_fact(f.name, f.expected, f.found) for f in frame.facts)
    facts += f"   ({', '.join(frame.clauses)})" if frame.differs and frame.clauses else ""
    head = f"{mark}{frame.number:>3}  {frame.do}"
    lines = [f"{head:<28} {facts}".rstrip(), *(f"     {s}" for s in _strips(frame.strips))]
    return "\n".join(lines)


def _fact(name: str, expected: str, found: str | None) -> str:
    return f"{name} {expected}" if found is None else f"{name} {expected} [found {found}]"


def _strips(strips: list[Strip]) -> list[str]:
    cells = [[_cell(c) for c in s.cells] for s in strips]
    wide = max((len(c) for row in cells for c in row if "…" not in c), default=1)
    name = max((len(s.what) for s in strips), default=8)
    return [_strip(s, row, wide, max(8, name)) for s, row in zip(strips, cells, strict=True)]


def _strip(strip: Strip, cells: list[str], wide: int, name: int) -> str:
    who = "" if strip.who == "both" else strip.who
    seams = [" | " if c.seam else " " for c in strip.cells]
    body = "".join(s + c.ljust(wide) for s, c in zip(seams, cells, strict=True))
    note = f"  ({strip.note})" if strip.note else ""
    return f"{strip.what:<{name}} {who:<9}{body}{note}".rstrip()


def _cell(cell: Cell) -> str:
    if cell.kind == "gap":
        return f"…{cell.text}…"
    text = (cell.text or "_") + MARKS.get(cell.kind, "")
    return f"[{text}]" if cell.differs else f" {text} "
