"""What a diagnosis says, for every kind of report: who answers alike, what it is, and what a model makes of it."""

from __future__ import annotations

import re

from msgspec import UnsetType

from kvreports.safe_text import line
from kvspec.reading.anomalies import anomalies
from kvspec.records.run import Failure, KnownBug

NONE = (
    "**Diagnosis:** none of the known bugs answers as this cache does, on this trace and on those beside it. "
    "`kvconform mutants --list` names them all."
)

_REPOSITORY = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/")


def told(failure: Failure) -> list[str]:
    """Paragraphs of small Markdown; none where nobody looked for a diagnosis."""
    found = failure.diagnosis
    if isinstance(found, UnsetType):
        return []
    return [*_first(found[0]), *_others(found[1:])] if found else [NONE]


def _first(named: KnownBug) -> list[str]:
    """The likeliest."""
    says, kind = line(named.says), anomalies().get(named.anomaly)
    behaves = (
        f"your cache behaves as one with {kind.name}." if kind else "your cache behaves as a bug that is known."
    )
    beside = named.fits.traces - 1
    same = f"On this trace and the {beside} tried beside it the two cannot be told apart (`{line(named.id)}`)."
    parts = [f"**Diagnosis:** {behaves}", says, same, _seen(named.link)]
    parts.append(f"See {', '.join(map(line, named.clauses))}." if named.clauses else "")
    effect = [f"**In a model:** {kind.effect}"] if kind else []
    return [" ".join(p for p in parts if p), *effect]


def _seen(link: str) -> str:
    if not link:
        return ""
    where = _REPOSITORY.match(link)
    return f"The same was seen in [{where[1]}]({link})." if where else f"The same was seen in {line(link)}."


def _others(others: list[KnownBug]) -> list[str]:
    """Those that fit too."""
    named = "; ".join(f"{line(n.says).rstrip('.')} (`{line(n.id)}`)" for n in others)
    return [f"**Or:** {named}."] if named else []
