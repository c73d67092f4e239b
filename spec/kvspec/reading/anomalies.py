"""The anomalies: names for the ways in which a cache can be wrong, read from the appendix on anomalies.

An anomaly begins with a heading `### stale-tail: a stale tail`; then come what it is, and the paragraphs `*In a
trace:*`, `*In a model:*` and `*Guarded by:*`. Reading is strict, as for chapters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise

from kvspec.errors import BadInput

_HEAD = re.compile(r"^### (?P<id>[a-z]+(?:-[a-z]+)*): (?P<name>.+)$", re.M)
_PARTS = ("In a trace", "In a model", "Guarded by")
_CLAUSE = re.compile(r"[A-Z]+-[1-9]\d*")


@dataclass(frozen=True)
class Anomaly:
    """One way in which a cache can be wrong. Texts are small Markdown."""

    id: str
    """Its id, such as stale-tail."""
    name: str
    """Its name in a sentence: a stale tail."""
    is_: str
    """What it is."""
    trace: str
    """How it shows in a trace."""
    effect: str
    """What it does to a model's output."""
    clauses: tuple[str, ...]
    """Clauses that guard against it."""


def text() -> str:
    """The appendix's Markdown."""
    return resources.files("kvspec").joinpath("appendices", "anomalies.md").read_text(encoding="utf-8")


@cache
def anomalies() -> dict[str, Anomaly]:
    """All anomalies by id, in the order of the appendix."""
    found = read(text())
    by_id = {a.id: a for a in found}
    if len(by_id) != len(found):
        raise BadInput("anomalies.md: an anomaly stands twice")
    return by_id


def read(text: str) -> list[Anomaly]:
    """Read the anomalies of an appendix. Raises BadInput that names the unreadable one."""
    starts = [m.start() for m in re.finditer(r"^### ", text, re.M)]
    return [_anomaly(text[a:b]) for a, b in pairwise([*starts, len(text)])]


def _anomaly(block: str) -> Anomaly:
    head = _HEAD.match(block)
    first = block.splitlines()[0]
    if head is None:
        raise BadInput(f"anomalies.md: not the heading of an anomaly: {first!r}")
    paragraphs = [" ".join(p.split()) for p in block[head.end() :].split("\n\n") if p.strip()]
    paragraphs = [p for p in paragraphs if not p.startswith("## ")]
    marks = [f"*{part}:* " for part in _PARTS]
    if len(paragraphs) != 4 or not all(p.startswith(m) for p, m in zip(paragraphs[1:], marks, strict=True)):
        raise BadInput(f"anomalies.md: {head['id']} needs what it is, then {', '.join(_PARTS)}")
    trace, effect, guarded = (p.removeprefix(m) for p, m in zip(paragraphs[1:], marks, strict=True))
    clauses = tuple(_CLAUSE.findall(guarded))
    if guarded != f"{', '.join(clauses)}.":
        raise BadInput(f"anomalies.md: {head['id']} is guarded by {guarded!r}, which is no list of clauses")
    return Anomaly(head["id"], head["name"].strip(), paragraphs[0], trace, effect, clauses)
