"""What broke, as annotations of GitHub: lines that its workflows show beside a commit.

The form: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from kvreports.run import findings, replay
from kvreports.run.standing import standing
from kvreports.safe_text import line, plain, shortened
from kvspec.records.run import Record

MOST = 10
"""Annotations of a run: GitHub shows no more of one step."""

LONGEST = 600
"""Characters of a text in an annotation."""


def wanted(asked: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether to write annotations: where it is asked for, and in a workflow of GitHub."""
    return asked or environment.get("GITHUB_ACTIONS") == "true"


def lines(record: Record) -> list[str]:
    """Give one error for each way in which clauses broke, the gravest first; one for a run that is no answer."""
    found = [f for f in findings.findings(record) if f.verdict != "XFAIL"]
    told = [_line(f"{', '.join(f.ids[:6]) or 'no clause'} {f.verdict}: {f.cause}", *_shown(f)) for f in found]
    if not told and record.exit_status:
        result = standing(record)
        told = [_line(result.words, result.because, *record.problems[:3])]
    left = len(told) - MOST
    return told[:MOST] if left <= 0 else [*told[: MOST - 1], _line(f"{left + 1} more", "see the report")]


def _shown(finding: findings.Finding) -> Iterator[str]:
    """The message and the trace."""
    yield finding.message
    if finding.failure is not None:
        yield finding.failure.words
    if finding.failure is not None and replay.in_words(finding.failure) and finding.ids:
        yield f"kvconform explain {finding.ids[0]}"


def _line(title: str, *texts: str) -> str:
    message = "\n".join(shortened(line(plain(text)), LONGEST) for text in texts if text)
    return f"::error title={_escaped(line(plain(title)), property_=True)}::{_escaped(message)}"


def _escaped(text: str, property_: bool = False) -> str:
    """The text with the characters that would end it replaced; those of a property are more."""
    for character, written in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(character, written)
    return text.replace(":", "%3A").replace(",", "%2C") if property_ else text
