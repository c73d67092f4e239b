"""The bugs of a run: each with the clauses that it breaks and the traces that show it.

Failures show one bug where one deviation makes them known, or where the cache behaves like one known bug. A failure
that was not diagnosed shows a bug that was, if it fails only clauses that this bug breaks. All other failures of a
chapter that went wrong in one way are one bug.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec import UNSET

from kvreports.drawing.text import draw
from kvreports.run import findings, replay
from kvreports.run.findings import Finding
from kvreports.run.standing import verdict
from kvspec.records.run import Failure, KnownBug, Record

SHOWN = 5
"""Traces of one bug that its text has, the shortest first."""


@dataclass(frozen=True)
class Bug:
    """What a cache does otherwise. `title`: why it is known, the known bug that it behaves like, or the cause."""

    title: str
    verdict: str
    chapter: str
    """The chapter of its first clause; empty where it breaks none."""
    clauses: tuple[str, ...]
    """The clause to look at first is the first."""
    failures: tuple[Failure, ...]
    """The shortest trace is the first; none where only a clause's own example or law failed."""
    reason: str
    """What was seen, or why it is known."""


def bugs(record: Record) -> list[Bug]:
    """The bugs of a run, the one to look at first at the front, known ones last. Each clause that broke, and each
    failure, is in one of them at least."""
    by: dict[tuple[str, str], list[tuple[Failure, list[str]]]] = {}
    named = _diagnosed(record.unexplained)
    for failure, ids in findings.failures(record):
        by.setdefault(_key(failure, named, record), []).append((failure, ids))
    found = [_bug(title, shown, record) for (title, _), shown in by.items()]
    told = {clause for bug in found for clause in bug.clauses}
    found += [b for f in findings.findings(record) if f.failure is None and (b := _unseen(f, told))]
    return sorted(found, key=lambda bug: bug.verdict == "XFAIL")


def told(bug: Bug, record: Record) -> Iterator[str]:
    """The clauses of a bug, what its shortest trace shows, and the command that replays it; then other traces. Each
    is a paragraph; some are empty."""
    yield f"breaks {', '.join(bug.clauses) or 'no clause that was selected'}"
    for failure in bug.failures[:1]:
        yield from (failure.words, failure.message, draw(failure.steps), replay.command(failure, record))
    yield from (f"kvconform explain {clause}" for clause in bug.clauses[:1])
    others = [f"{failure.words}\n  {failure.message}" for failure in bug.failures[1:SHOWN]]
    yield "\n".join(["other traces that show it:", *others]) if others else ""
    more = len(bug.failures) - SHOWN
    yield f"and {more} more, in record.json" if more > 0 else ""


def _diagnosed(failures: Iterable[Failure]) -> list[KnownBug]:
    """The known bugs that failures were likeliest to be."""
    return [f.diagnosis[0] for f in failures if f.diagnosis is not UNSET and f.diagnosis]


def _key(failure: Failure, named: list[KnownBug], record: Record) -> tuple[str, str]:
    """What failures of one bug have in common: its title, and the chapter where the title says only the cause."""
    if failure.expected:
        return failure.known[failure.clauses[0]], ""
    if failure.diagnosis is UNSET:
        same = next((bug for bug in named if failure.clauses and {*failure.clauses} <= {*bug.clauses}), None)
    else:
        same = failure.diagnosis[0] if failure.diagnosis else None
    return (f"like {same.id}", "") if same else (findings.kind(failure), _chapter(failure.clauses, record))


def _bug(title: str, shown: list[tuple[Failure, list[str]]], record: Record) -> Bug:
    clauses = tuple(dict.fromkeys(c for failure, ids in shown for c in (*ids, *failure.clauses)))
    failures = tuple(sorted((failure for failure, _ in shown), key=lambda f: (len(f.steps), len(f.words))))
    seen = title if failures[0].expected else failures[0].message
    return Bug(title, verdict(failures[0]), _chapter(clauses, record), clauses, failures, seen)


def _unseen(finding: Finding, told: set[str]) -> Bug | None:
    """The bug of clauses that no failing trace shows; None where each of them is told already."""
    clauses = tuple(clause for clause in finding.clauses if clause.id not in told)
    if not clauses:
        return None
    ids = tuple(clause.id for clause in clauses)
    return Bug(finding.cause, clauses[0].verdict, clauses[0].chapter, ids, (), clauses[0].reason)


def _chapter(clauses: Iterable[str], record: Record) -> str:
    """The chapter of the first of these clauses that the run judged."""
    chapters = {clause.id: clause.chapter for clause in record.clauses}
    return next((chapters[clause] for clause in clauses if clause in chapters), "")
