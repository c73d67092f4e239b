"""The bugs of a run, as annotations of GitHub: lines that its workflows show beside a commit.

The form: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvreports.run.standing import standing
from kvreports.safe_text import line, plain, shortened
from kvspec.records.run import Record

if TYPE_CHECKING:
    from kvreports.run.bugs import Bug

MOST = 10
"""Annotations of a run: GitHub shows no more of one step."""

LONGEST = 600
"""Characters of a text in an annotation."""


def lines(record: Record) -> list[str]:
    """Give one error for each bug that is not known, the gravest first; one for a run that is no answer."""
    from kvreports.run.bugs import bugs  # it draws traces, and few runs are annotated

    found = [_line(_title(bug), *_shown(bug)) for bug in bugs(record) if bug.verdict != "XFAIL"]
    if not found and record.exit_status:
        result = standing(record)
        found = [_line(result.words, result.because, *record.problems[:3])]
    left = len(found) - MOST
    return found[:MOST] if left <= 0 else [*found[: MOST - 1], _line(f"{left + 1} more", "see the report")]


def _title(bug: Bug) -> str:
    return f"{next(iter(bug.clauses), 'no clause')} {bug.verdict}: {bug.title}"


def _shown(bug: Bug) -> Iterator[str]:
    """What was seen, the shortest trace, and the clauses; of a clause's text only the command that prints it."""
    yield bug.reason
    for failure in bug.failures[:1]:
        yield failure.words
    if bug.clauses:
        yield f"breaks {', '.join(bug.clauses)}"
        yield f"kvconform explain {bug.clauses[0]}"


def _line(title: str, *texts: str) -> str:
    message = "\n".join(shortened(line(plain(text)), LONGEST) for text in texts if text)
    return f"::error title={_escaped(line(plain(title)), property_=True)}::{_escaped(message)}"


def _escaped(text: str, property_: bool = False) -> str:
    """The text with the characters that would end it replaced; those of a property are more."""
    for character, written in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(character, written)
    return text.replace(":", "%3A").replace(",", "%2C") if property_ else text
