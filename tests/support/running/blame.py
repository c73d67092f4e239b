"""Measures blame: of planted bugs and of fresh ones, which clauses fail, which clause is looked at first, and what
the diagnosis names.

Each bug is judged in this process as `kvconform run --quick` would, on an engine that claims a few chapters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tabulate import tabulate

from kvconform.checks.check import judge as judge_check
from kvconform.checks.suite import selected
from kvconform.diagnosis.diagnose import diagnose
from kvconform.generate.amounts import QUICK_COVERS, QUICK_TRACES
from kvconform.runner.record.record import kept, record
from kvconform.runner.settings import Settings
from kvconform.runner.verdict.tally import Tally
from kvconform.runner.verdict.verdict import lacks
from kvreports import json_file
from kvreports.run.findings import findings
from kvspec.contract import Description, description
from kvspec.notation import from_sentence
from kvspec.reading.clauses import index
from kvspec.records.mutants import Matrix
from kvspec.records.run import BROKEN, KnownBug, Record
from kvspec.trace import looked_at
from kvworkshop.all_mutants import KINDS as MUTANTS
from support.fakes import fresh_bugs
from support.running.local_adapter import LocalAdapter

MATRIX = Path(__file__).parents[3] / "reports/published/mutants/mutants.json"


class Bug(NamedTuple):
    """A wrong cache, the clauses that a careful reader would name, and the chapters that its engine claims."""

    id: str
    clauses: tuple[str, ...]
    claims: tuple[str, ...]
    adapter: Callable[[], Any]
    level: str = "storage"


@dataclass(frozen=True)
class Blame:
    """What a run said of one bug."""

    bug: Bug
    record: Record
    never: int
    """Clauses that failed and never differed."""
    unclaimed: int
    """Clauses that failed and that the engine does not claim."""
    seconds: float

    @property
    def failed(self) -> list[str]:
        """The clauses that broke."""
        return [c.id for c in self.record.clauses if c.verdict in BROKEN]

    @property
    def ended(self) -> int:
        """Clauses that were not judged, because their examples ended early."""
        return sum(c.verdict == "NOT_RUN" for c in self.record.clauses)

    @property
    def first(self) -> str:
        """The clause to look at first; empty if none broke."""
        found = findings(self.record)
        return found[0].ids[0] if found and found[0].ids else ""

    @property
    def right(self) -> bool:
        """Whether that is one that a reader would name."""
        return self.first in self.bug.clauses

    @property
    def seen(self) -> bool:
        """Whether one of those broke."""
        return bool(set(self.failed) & set(self.bug.clauses))

    @property
    def named(self) -> list[str]:
        """The bugs that the diagnosis names for the first failure it says anything of, the likeliest first."""
        each: list[list[KnownBug]] = [f.diagnosis for f in self.record.failures if isinstance(f.diagnosis, list)]
        return [bug.id for bug in next((bugs for bugs in each if bugs), [])]

    @property
    def diagnosis(self) -> str:
        """right, nothing, or wrong: a bug that breaks none of these clauses."""
        if not self.named:
            return "nothing"
        named = next(f.diagnosis for f in self.record.failures if isinstance(f.diagnosis, list) and f.diagnosis)
        mine = self.bug.id in self.named or {*named[0].clauses} & {*self.bug.clauses}
        return "right" if mine else "wrong"


def planted(every: int = 1, match: str = "") -> Iterator[Bug]:
    """Some planted bugs of each kind, each on an engine with the chapters of the trace that shows it; in turn at
    level storage and at level visible."""
    traces = {m.id: m.trace for m in json_file.load(MATRIX, Matrix).mutants if m.killed and m.trace}
    for kind, strides in (("catalogue", 1), ("anomalies", 1), ("reference", 40)):
        named = [m for m in MUTANTS[kind]() if m.clauses and m.id in traces and match in m.id and not m.is_control]
        for i, m in enumerate(named[:: every * strides]):
            used = looked_at(from_sentence(traces[m.id]))
            claims = {*used, *(index()[c].chapter for c in m.clauses if not index()[c].general)}
            visible = i % 2 and any(index()[c].level == "visible" for c in m.clauses)
            yield Bug(m.id, m.clauses, tuple(sorted(claims)), m.adapter, "visible" if visible else "storage")


def fresh(match: str = "") -> Iterator[Bug]:
    """The fresh bugs."""
    for i, b in enumerate(b for b in fresh_bugs.BUGS if match in b.id):
        visible = i % 2 and any(index()[c].level == "visible" for c in b.clauses)
        yield Bug(b.id, b.clauses, b.claims, b.adapter, "visible" if visible else "storage")


Without = Mapping[str, set[str]]
"""Abilities that an engine does not claim, by chapter."""


def claimed(bug: Bug, without: Without | None = None) -> Description:
    """What the engine that has a bug claims."""
    said = description(bug.adapter().describe())
    claims = {c: replace(said.chapters[c], without=frozenset((without or {}).get(c, ()))) for c in bug.claims}
    adapter = replace(said, chapters=claims)
    return adapter.at_most("visible") if bug.level == "visible" else adapter


def judged(bug: Bug, diagnosed: bool = True, without: Without | None = None) -> Blame:
    """Judge an engine with this bug as a quick run does, in this process."""
    began = time.process_time()
    under_test = LocalAdapter(bug.adapter(), traces=QUICK_TRACES, cover_traces=QUICK_COVERS)
    under_test.adapter = claimed(bug, without)
    settings = Settings("bug", traces=QUICK_TRACES, cover_traces=QUICK_COVERS, quick=True)
    total = Tally()
    for check in selected(settings, under_test.adapter):
        if check.chapter in index_chapters():
            total.merge(judge_check(under_test, check).tally)
    if diagnosed:
        total.diagnosis = diagnose(kept(total), lambda t: under_test.run(t, past=True), under_test.adapter)
    whole = record(total, under_test.adapter, settings.selected(), _about(settings))
    failed = [c for c in whole.clauses if c.verdict in BROKEN]
    return Blame(
        bug,
        whole,
        sum(not c.differed for c in failed),
        sum(bool(lacks(index()[c.id], under_test.adapter)) for c in failed),
        time.process_time() - began,
    )


def index_chapters() -> set[str]:
    """The chapters that clauses stand in."""
    return {c.chapter for c in index().values()}


def _about(settings: Settings) -> dict[str, Any]:
    return {
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 0.0,
        "partial": False,
        "partial_reason": "",
        "command": ["bug"],
        "selection": settings.to_json(),
        "memory": {},
    }


def rates(blames: Sequence[Blame]) -> dict[str, float]:
    """Clauses failed in the median and at most, and shares of all bugs."""
    of = max(1, len(blames))
    return {
        "bugs": len(blames),
        "found": sum(bool(b.failed) for b in blames) / of,
        "clauses failed, median": median([len(b.failed) for b in blames] or [0]),
        "clauses failed": sum(len(b.failed) for b in blames),
        "never differed": sum(b.never for b in blames),
        "not claimed": sum(b.unclaimed for b in blames),
        "a right one fails": sum(b.seen for b in blames) / of,
        "first is right": sum(b.right for b in blames) / of,
        "diagnosis right": sum(b.diagnosis == "right" for b in blames) / of,
        "diagnosis wrong": sum(b.diagnosis == "wrong" for b in blames) / of,
    }


def failed(blames: Iterable[Blame]) -> str:
    """A line for each bug: the clauses that failed, in how many traces they differed, and how suspect they are."""
    return "\n".join(
        " ".join([b.bug.id, *(f"{c.id}:{c.differed}:{c.suspicion}" for c in b.record.clauses if c.id in b.failed)])
        for b in blames
    )


def table(blames: Iterable[Blame]) -> str:
    """A line for each bug."""
    head = ("bug", "level", "breaks", "failed", "never", "in", "ended", "first", "", "diagnosis", "seconds")
    lines = [
        (
            b.bug.id,
            b.bug.level,
            " ".join(b.bug.clauses),
            len(b.failed),
            b.never,
            "" if b.seen else "NOT",
            b.ended,
            b.first,
            "" if b.right else "NOT",
            f"{b.diagnosis}: {', '.join(b.named)}"[:70],
            f"{b.seconds:.1f}",
        )
        for b in blames
    ]
    return tabulate(lines, head, disable_numparse=True)
