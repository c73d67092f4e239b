"""Frozen covers: traces of all transitions of small state graphs, each with a digest of its results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from kvconform.generate import covers as cover
from kvspec import notation
from kvspec.contract import CHAPTERS
from kvspec.registry import modules
from kvspec.trace import Trace, config_from_json

VERSION = 2
FOLDER = resources.files("kvspec").joinpath("vectors")


@dataclass(frozen=True)
class Cover:
    """The frozen cover of one configuration."""

    name: str
    start: Trace
    states: int
    transitions: int
    told_apart: bool
    lines: tuple[str, ...]
    digests: tuple[str, ...]

    def traces(self) -> Iterator[Trace]:
        """Give its traces, shortest first."""
        for line in self.lines:
            ops = tuple(_operation(text) for text in line.split("; "))
            yield Trace(self.start.kind, self.start.config, ops)


@cache
def _operation(text: str) -> dict[str, Any]:
    return notation.operation(text)


def chapters() -> tuple[str, ...]:
    """Name the chapters that have frozen covers."""
    return tuple(p for p in CHAPTERS if path(p).is_file())


def planned() -> tuple[str, ...]:
    """Name the chapters that have plans for covers; the others have no state graph to cover."""
    return tuple(p for p in CHAPTERS if hasattr(_strategies(p), "plans"))


def _strategies(chapter: str) -> Any:
    return modules("kvconform.generate.strategies").get(chapter)


def path(chapter: str) -> Any:
    """Give the file of a chapter's frozen covers."""
    return FOLDER.joinpath(f"cover-{chapter}.json")


@cache
def load(chapter: str) -> tuple[Cover, ...]:
    """Load the frozen covers of a chapter; an empty list if it has none."""
    if not path(chapter).is_file():
        return ()
    document = json.loads(path(chapter).read_text(encoding="utf-8"))
    return tuple(_cover(c) for c in document["covers"])


def _cover(c: dict[str, Any]) -> Cover:
    start = Trace(c["kind"], config_from_json(c["config"], c["kind"]))
    lines, digests = (tuple(t[i] for t in c["traces"]) for i in (0, 1))
    return Cover(c["name"], start, c["states"], c["transitions"], c["told_apart"], lines, digests)


def digest() -> dict[str, Any]:
    """Hash all frozen files, and count their traces."""
    files = [path(p).read_bytes() for p in chapters()]
    count = sum(len(c.lines) for p in chapters() for c in load(p))
    return {"hash": hashlib.sha256(b"".join(files)).hexdigest()[:16], "count": count}


def compute(chapter: str) -> dict[str, Any]:
    """Compute the covers of a chapter from its plans, as the document to freeze."""
    plans = _strategies(chapter).plans()
    covers = [_computed(plan) for plan in plans]
    return {
        "kvvectors": VERSION,
        "licence": "CC0-1.0",
        "chapter": chapter,
        "notes": "Each trace with the first 8 digits of the sha256 of all the reference does on it.",
        "traces": sum(len(c["traces"]) for c in covers),
        "covers": covers,
    }


def _computed(plan: cover.Plan) -> dict[str, Any]:
    closed = cover.closure(plan)
    traces = [
        ["; ".join(map(notation.words, ops)), cover.digest(plan.start, ops)] for ops in cover.traces(plan, closed)
    ]
    return {
        "name": plan.name,
        "kind": plan.start.kind,
        "config": plan.start.config.to_json(),
        "states": len(closed.states),
        "transitions": closed.transitions,
        "told_apart": cover.told_apart(plan, closed),
        "traces": traces,
    }


def text(document: dict[str, Any]) -> str:
    """Write the document with one trace a line, so that a change is a readable diff."""
    covers = document.pop("covers")
    head = json.dumps(document, indent=1)[:-2]
    return head + ',\n "covers": [\n' + ",\n".join(map(_cover_text, covers)) + "\n]}\n"


def _cover_text(c: dict[str, Any]) -> str:
    traces = c.pop("traces")
    lines = ",\n".join("   " + json.dumps(t) for t in traces)
    return "  " + json.dumps(c)[:-1] + ', "traces": [\n' + lines + "\n  ]}"
