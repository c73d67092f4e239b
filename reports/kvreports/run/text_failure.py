"""A failure for a terminal: the clause to look at first, what is known of it, and its trace."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from kvreports import inline_markdown
from kvreports.drawing.text import draw
from kvreports.run import diagnosis, replay
from kvreports.run.findings import Finding
from kvreports.run.overview import Clauses
from kvreports.safe_text import line, shortened
from kvreports.terminal import paragraph
from kvspec.records.run import Failure, Record

NONDETERMINISTIC = "This did not happen on every replay: the adapter is nondeterministic."


def finding(found: Finding, clauses: Clauses, width: int) -> Iterator[str]:
    """Write what makes it known, the diagnosis, the clause to look at with its rule, and the trace that shows
    it."""
    failed, ids = found.failure, ", ".join(map(line, found.ids)) or "no clause"
    if failed is not None:
        yield _entry(failed)
        yield "\n".join(_indented(text, width) for text in _diagnosis(failed))
    texts = [inline_markdown.text(line(clauses[i].text)) for i in found.ids[:1] if i in clauses]
    if failed is None or found.verdict == "XFAIL":
        texts.append(line(shortened(found.message, 600)))
    title = f"{found.title} {ids}: {found.verdict}, {line(found.cause)}"
    yield "\n".join([title, *(_indented(t, width) for t in texts)])
    yield "" if failed is None else failure(failed, width)


def _entry(failed: Failure) -> str:
    """What makes the failure known, once it is reported."""
    if failed.entry is UNSET:
        return ""
    entry = [f"  {line(text)}" for text in failed.entry.splitlines()]
    return "\n".join(["to expect it once you have reported it, write into kvconform.toml:", *entry])


def _diagnosis(failed: Failure) -> list[str]:
    return [line(inline_markdown.text(shortened(p, 900))) for p in diagnosis.paragraphs(failed)]


def _indented(text: str, width: int) -> str:
    return paragraph(text, width, "  ")


def commands(found: Finding, record: Record) -> Iterator[str]:
    """The commands that explain the clause and replay the trace. A trace that words cannot say is in the report."""
    if found.ids:
        yield f"kvconform explain {line(found.ids[0])}"
    if found.failure is not None and replay.in_words(found.failure):
        yield line(replay.command(found.failure, record))


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
