"""Frozen covers: traces of all transitions of small state graphs, each with what the reference answers to it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from kvspec import notation
from kvspec.contract import CHAPTERS
from kvspec.errors import NotWhole
from kvspec.trace import Frozen, Outcome, Trace, config_from_json

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
    frozen: Mapping[str, Frozen]
    """What the reference answers, by line."""

    def traces(self) -> Iterator[Trace]:
        """Give its traces, shortest first."""
        for line in self.lines:
            ops = tuple(map(read_operation, notation.separated(line)))
            yield Trace(self.start.kind, self.start.config, ops, self.frozen.get(line))


@cache
def read_operation(text: str) -> dict[str, Any]:
    """Read an operation of a frozen trace, not to be written on: the same one stands in many."""
    return notation.operation(text)


def chapters() -> tuple[str, ...]:
    """Name the chapters that have frozen covers."""
    return tuple(p for p in CHAPTERS if path(p).is_file())


def path(chapter: str) -> Any:
    """Give the file of a chapter's frozen covers."""
    return FOLDER.joinpath(f"cover-{chapter}.json")


@cache
def load(chapter: str) -> tuple[Cover, ...]:
    """Load the frozen covers of a chapter; an empty list if it has none. Raises NotWhole where some are gone."""
    if not path(chapter).is_file():
        return ()
    document = json.loads(path(chapter).read_text(encoding="utf-8"))
    covers = tuple(_cover(c) for c in document["covers"])
    if (there := sum(len(cover.lines) for cover in covers)) != document["traces"]:
        raise NotWhole(f"kvspec/vectors/{path(chapter).name} has {there} traces; it says {document['traces']}")
    return covers


@cache
def shortest_first(chapter: str) -> tuple[Trace, ...]:
    """Give the traces of a chapter's covers, the shortest first."""
    return tuple(sorted((t for cover in load(chapter) for t in cover.traces()), key=lambda t: len(t.ops)))


def _cover(c: dict[str, Any]) -> Cover:
    start = Trace(c["kind"], config_from_json(c["config"], c["kind"]))
    outcomes = read_outcomes(c["outcomes"])
    frozen = {line: read_answers(outcomes, digest, ends) for line, digest, ends in c["traces"]}
    return Cover(c["name"], start, c["states"], c["transitions"], c["told_apart"], tuple(frozen), frozen)


def read_outcomes(texts: Iterable[str]) -> dict[str, Outcome]:
    """Read outcomes as they are listed, by the characters that stand for them."""
    return {sign(number): _outcome(text) for number, text in enumerate(texts)}


def read_answers(outcomes: Mapping[str, Outcome], digest: str, ends: str, states: Iterable[int] = ()) -> Frozen:
    """Read what the reference answers to a trace: a hash, and a character for the outcome of each operation."""
    return Frozen(digest, tuple(map(outcomes.__getitem__, ends)), tuple(states))


def sign(number: int) -> str:
    """Give the character that stands for an outcome of a cover, by the order in which they are listed: 0 for the
    first, A for the eighteenth."""
    return chr(ord("0") + number)


def _outcome(text: str) -> Outcome:
    ended, _, rest = text.partition(": ")
    (result, _, clause), (cites, _, failed) = ended.partition(" "), rest.partition("; failed ")
    return Outcome(result, clause, tuple(cites.split()), tuple(map(int, failed.split())))


def outcome_text(outcome: Outcome) -> str:
    """Write an outcome as it is listed: `refused CACHE-8: CACHE-8`, or `ok: GROW-1; failed 0 3` for a run."""
    failed = "; failed " + " ".join(map(str, outcome.failed)) if outcome.failed else ""
    return f"{outcome.result} {outcome.clause}".strip() + ": " + " ".join(outcome.cites) + failed


def digest() -> dict[str, Any]:
    """Hash all frozen covers, and count their traces, as each file says how many it has."""
    files = [path(p).read_bytes() for p in chapters()]
    count = sum(int(number[1]) for file in files if (number := _TRACES.search(file)))
    return {"hash": hashlib.sha256(b"".join(files)).hexdigest()[:16], "count": count}


_TRACES = re.compile(rb'"traces": (\d+)')
