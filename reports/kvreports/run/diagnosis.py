"""The text of a diagnosis for every kind of report: which known bug behaves the same, and what it does to a
model."""

from __future__ import annotations

import re

from msgspec import UnsetType

from kvreports.safe_text import line
from kvspec.reading.anomalies import anomalies
from kvspec.records.run import Failure, KnownBug

NONE = (
    "**Diagnosis:** no known bug behaves like this cache on this trace and its neighbours. "
    "`kvconform mutants --list` lists the known bugs."
)

_REPOSITORY = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/")


SHOWN = 3
"""Bugs that are named for a failure, at most: where more behave alike, the text says how many."""


def paragraphs(failure: Failure) -> list[str]:
    """Paragraphs of small Markdown; none without a diagnosis."""
    bugs = failure.diagnosis
    if isinstance(bugs, UnsetType):
        return []
    return [*_first(bugs), *_others(bugs[1:])] if bugs else [NONE]


def _first(bugs: list[KnownBug]) -> list[str]:
    """The likeliest bug, and what all of them have in common."""
    bug, ids = bugs[0], {bug.anomaly for bug in bugs}
    anomaly = anomalies().get(bug.anomaly) if len(ids) == 1 else None
    like = f"one with {anomaly.name}" if anomaly else "a known bug" if len(bugs) == 1 else "several known bugs"
    parts = [f"**Diagnosis:** your cache behaves like {like}.", line(bug.says), _same(bug), _unchecked(bug)]
    parts += [_seen(bug.link), f"See {', '.join(map(line, bug.clauses))}." if bug.clauses else ""]
    effect = [f"**In a model:** {anomaly.effect}"] if anomaly else []
    return [" ".join(p for p in parts if p), *effect]


def _same(bug: KnownBug) -> str:
    """On how many traces the bug shows."""
    near = bug.fits.traces - 1
    beside = " and on one neighbour" if near == 1 else f" and on {near} neighbours" if near else ""
    return f"On this trace{beside} your cache differs from the spec exactly as this bug does (`{line(bug.id)}`)."


def _unchecked(bug: KnownBug) -> str:
    """What the comparison leaves out."""
    n = bug.fits.of - bug.fits.traces
    others = "one other neighbour" if n == 1 else f"{n} other neighbours"
    return f"On {others} your cache also takes what it must refuse." if n else ""


def _seen(link: str) -> str:
    if not link:
        return ""
    repository = _REPOSITORY.match(link)
    return f"The bug was seen in {f'[{repository[1]}]({link})' if repository else line(link)}."


def _others(bugs: list[KnownBug]) -> list[str]:
    """The bugs that fit as well."""
    shown, more = bugs[: SHOWN - 1], len(bugs[SHOWN - 1 :])
    words = "; ".join(f"{line(bug.says).rstrip('.')} (`{line(bug.id)}`)" for bug in shown)
    rest = f" So do {more} more." if more > 1 else " So does one more." if more else ""
    return [f"**Or:** {words}. No trace that was tried tells these apart.{rest}"] if words else []
