"""Lets the suite judge an attack or a right cache in this process: what finds it, how soon, which clause it names.

A run is the suite's own: its checks, in its order, with its amounts of traces. It differs in that nothing is made
short, that the adapter is in this process, and that honesty is not judged, which needs the wire.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from msgspec import Struct

from hostile.attacks.wrapper import Attacked
from kvconform import cli
from kvconform.checks import honesty, suite
from kvconform.checks.check import Check
from kvconform.checks.check import judge as judge_check
from kvconform.commands.run import settings_of
from kvconform.judge.trial_result import TrialResult
from kvconform.runner.failures import Failures
from kvconform.runner.record.record import record
from kvconform.runner.settings import Settings
from kvconform.runner.verdict.tally import Tally
from kvreports.run import findings
from kvspec.notation import sentence
from kvspec.reading.clauses import index
from kvspec.records.run import Record
from kvspec.session.driver import Session
from kvspec.session.step import NOTHING, Inputs, Step
from kvspec.trace import Trace
from support.running.judging import ABOUT
from support.running.local_adapter import LocalAdapter

MODES = ("quick", "whole")


class Found(Struct):
    """What a run showed of one cache."""

    id: str
    mode: str
    found: bool = False
    source: str = ""
    """The check that found it: `ring/large/window`."""
    operations: int = 0
    """Operations judged until then."""
    seconds: float = 0.0
    struck: int = 0
    """How often something was done wrongly; of a cache that is not found: wrongly, and nobody saw it."""
    unseen: str = ""
    """The shortest trace in which something was done wrongly and nobody saw it."""
    trace: str = ""
    message: str = ""
    first: str = ""
    """The clause to look at first."""
    right: bool | None = None
    """Whether that is a clause of the operation that went wrong; None where no run was judged to its end."""
    rightly: list[str] = []
    """The clauses that are right."""
    error: str = ""
    """What was odd: a check that failed though the run did not, or what ended the judging."""


class About(NamedTuple):
    """What an attack is about, which tells the clauses that are right to look at first."""

    chapters: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    """The observables in which its effect shows."""
    before: bool = False
    """Whether the step before the one that goes wrong has a part in it, so that its clauses are right too."""


class Noting(Session):
    """Notes after which of its steps something had been done wrongly."""

    def __init__(self, adapter: Any, observe: Sequence[str]) -> None:
        super().__init__(adapter, observe)
        self.steps, self.depth, self.struck = 0, 0, list[int]()

    def do(self, op: Any, inputs: Inputs = NOTHING) -> Step:
        """Perform one operation."""
        before, opening = getattr(self.adapter, "struck", 0), op["op"] == "open" and not self.caches
        self.depth += 1
        step = super().do(op, inputs)
        self.depth -= 1
        if self.depth == 0:  # the operations of a run are one step
            self.struck += [self.steps] if getattr(self.adapter, "struck", 0) > before else []
            self.steps += not opening
        return step


class Kept(Failures):
    """Keeps each failure as it is: shortening it says nothing of whether it is found."""

    def keep(self, seen: TrialResult, source: str) -> bool:
        """Keep the first of each clause and cause."""
        kept = {(f.cause, tuple(f.clauses)) for f in self.under_test.kept}
        if (seen.cause, tuple(seen.blamed)) not in kept:
            self.under_test.kept.append(self.under_test.failure(seen, source))
        return False


class Judged(LocalAdapter):
    """An attack under test."""

    def __init__(self, adapter: Any, settings: Settings, about: About = About()) -> None:  # noqa: B008
        super().__init__(adapter, traces=settings.traces, seed=settings.seed, cover_traces=settings.cover_traces)
        self.failures = Kept(self)
        self.about = about
        self.rightly: dict[str, None] = {}
        self.shown: TrialResult | None = None
        self.missed: Trace | None = None
        self.last: Noting | None = None

    def session(self, observe: tuple[str, ...]) -> Session:
        """A session that notes strikes."""
        self.last = Noting(self.worker.adapter, observe)  # type: ignore[attr-defined]
        return self.last

    def run(self, trace: Trace, watch: bool = False, past: bool = False) -> TrialResult:
        """One trial; of one that differs the clauses of the steps that went wrong are right."""
        seen = super().run(trace, watch, past)
        assert self.last is not None
        if seen.failed:
            self.shown = self.shown or seen
            steps = (i - ago for i in self.last.struck for ago in range(1 + self.about.before) if i >= ago)
            self.rightly |= dict.fromkeys(c for i in steps for c in self._right(seen, i))
        elif self.last.struck and (self.missed is None or len(trace.ops) < len(self.missed.ops)):
            self.missed = trace
        return seen

    def _right(self, seen: TrialResult, step: int) -> Iterator[str]:
        """The clauses that a step exercised, of the attack's chapters, in whose observables its effect shows; those
        that a difference names by itself, as one of costs does, too."""
        cites = seen.steps[step][0].cites if step < len(seen.steps) else ()
        cites = (*cites, *(d.clause for d in seen.differences if step == len(seen.steps) - 1))
        for clause in (index()[c] for c in cites if c in index()):
            if clause.claimed(self.about.chapters) and set(self.about.fields) & set(clause.seen_in):
                yield clause.id


@cache
def settings(mode: str) -> Settings:
    """Those of `kvconform run`, or of `kvconform run --quick`."""
    options = cli.parser().parse_args(["run", "attack", "-q", *(["--quick"] if mode == "quick" else [])])
    options.process = ()
    return settings_of(options)


def checks(under_test: Judged, mode: str) -> list[Check]:
    """Those that a run judges, but for honesty."""
    return [c for c in suite.selected(settings(mode), under_test.adapter) if c.chapter != honesty.CHAPTER]


def judge(id_: str, adapter: Any, mode: str, about: About = About(), look: bool = False) -> Found:  # noqa: B008
    """Judge a cache until a check fails; with `look` to the end of the run, for the clause to look at first."""
    found, began = Found(id_, mode), time.monotonic()
    under_test = Judged(adapter, settings(mode), about)
    total = Tally()
    for check in checks(under_test, mode):
        result = judge_check(under_test, check)
        total.merge(result.tally)
        if (result.difference or result.error) and not found.found:
            whole = _record(total, under_test)
            found.found = whole.exit_status == 1
            found.error = found.error or ("" if found.found else f"{check.id} fails, and the run does not")
            found.source, found.operations = check.id, under_test.operations
            found.message = (result.difference or result.error)[:400]
            found.trace = _sentence(under_test.shown)
            found.seconds = round(time.monotonic() - began, 2)
        if found.found and not look:
            break
    if found.found:
        _look(found, _record(total, under_test), under_test)
    found.struck = adapter.struck if isinstance(adapter, Attacked) else 0
    found.unseen = sentence(under_test.missed)[:300] if under_test.missed else ""
    found.seconds = found.seconds or round(time.monotonic() - began, 2)
    return found


def _sentence(seen: TrialResult | None) -> str:
    return sentence(seen.trace.cut(len(seen.steps)))[:400] if seen else ""


def _record(total: Tally, under_test: Judged) -> Record:
    """The record of a run that was ended."""
    return record(total, under_test.adapter, index(), {**ABOUT, "partial": True, "partial_reason": "an attack"})


def _look(found: Found, whole: Record, under_test: Judged) -> None:
    """The clause that a report would begin with, and whether it is right."""
    suspects = findings.suspects(whole)
    found.first, found.rightly = suspects[0].id if suspects else "", list(under_test.rightly)
    found.right = found.first in under_test.rightly
