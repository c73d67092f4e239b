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


def paragraphs(failure: Failure) -> list[str]:
    """Paragraphs of small Markdown; none without a diagnosis."""
    bugs = failure.diagnosis
    if isinstance(bugs, UnsetType):
        return []
    return [*_first(bugs[0]), *_others(bugs[1:])] if bugs else [NONE]


def _first(bug: KnownBug) -> list[str]:
    """The likeliest bug."""
    anomaly = anomalies().get(bug.anomaly)
    like = (
        f"your cache behaves like one with {anomaly.name}." if anomaly else "your cache behaves like a known bug."
    )
    near = bug.fits.traces - 1
    same = f"On this trace and on {near} neighbours of it the two behave the same (`{line(bug.id)}`)."
    parts = [f"**Diagnosis:** {like}", line(bug.says), same, _unchecked(bug), _seen(bug.link)]
    parts.append(f"See {', '.join(map(line, bug.clauses))}." if bug.clauses else "")
    effect = [f"**In a model:** {anomaly.effect}"] if anomaly else []
    return [" ".join(p for p in parts if p), *effect]


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
    words = "; ".join(f"{line(bug.says).rstrip('.')} (`{line(bug.id)}`)" for bug in bugs)
    return [f"**Or:** {words}."] if words else []
