"""The adapter under test: runs traces in its worker, shrinks failures, keeps the tally of a check."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from kvconform.generate.amounts import FEW, SEED, TRACES
from kvconform.generate.claims.fit_to_adapter import fitted, shut_out
from kvconform.generate.frozen_traces import NONE, Explored
from kvconform.generate.variations import VARIATIONS
from kvconform.judge import trial
from kvconform.judge.lockstep import Performs
from kvconform.judge.storage import Difference
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.deviating import PLAIN, Deviating
from kvconform.runner.explaining import Explaining, demand_loadable
from kvconform.runner.failures import LOOK_BACK, Failures
from kvconform.runner.settings import Settings
from kvconform.runner.verdict.known import KnownDeviation, applying, explanations
from kvconform.runner.verdict.tally import Tally, empty_coverage, places
from kvconform.worker.client import Worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Description
from kvspec.operations.table import RUN
from kvspec.records.run import Coverage, Failure, VerdictName
from kvspec.trace import Trace

ENOUGH = {"FAIL": 40, "PROTOCOL": 5, "CRASH": 5, "OOM": 3, "HANG": 1}
"""Failing traces of one check after which its remaining traces are skipped, by verdict. They would tell nothing
new, and each failure but FAIL costs a process or a deadline."""
MOST_DRAWN = 4
"""Times as many traces that are drawn at most, where few of them suit the adapter."""


class Differs(AssertionError):
    """The adapter does not do what the spec says."""


class DiffersAsKnown(Exception):
    """The adapter does not do what the spec says, and known deviations explain all of it."""


@dataclass
class AdapterUnderTest:
    """One adapter in one worker; one check at a time."""

    worker: Worker
    adapter: Description
    traces: int = TRACES
    """Traces that each exploration draws."""
    seed: int = SEED
    cover_traces: int = 0
    """Cover traces judged of each chapter, a sample of all; 0 for all."""
    clauses: frozenset[str] = frozenset()
    """The clauses that alone are judged, on traces that concern them; none for all."""
    known: tuple[KnownDeviation, ...] = ()
    """Failures that are expected of it."""
    tally: Tally = field(default_factory=Tally)
    """What the check at hand showed."""
    check: str = ""
    operations: int = 0
    """Operations judged since the start."""
    budget_used: float = 0.0
    """Share of this check's failure budget used; at 1.0 its remaining traces are skipped."""
    ran: deque[Trace] = field(default_factory=lambda: deque(maxlen=LOOK_BACK + 1))
    """The traces that ran last in the worker's process, the newest at the end."""
    failures: Failures = field(init=False)
    """The failures of this check, and the conclusions from earlier ones."""
    explaining: Explaining = field(init=False)
    """What is known of the adapter."""
    cut_short: bool = False
    """Whether a trace of this check went over the limit of memory by what operations keep."""
    take_all: set[str] = field(default_factory=set)
    """Operations that take too much memory by themselves."""

    def __post_init__(self) -> None:
        self.failures = Failures(self)
        explained = partial(trial.explained, adapter=self.adapter)
        self.explaining = Explaining(self.known, self.adapter, explained)

    def takes(self, settings: Settings) -> None:
        """Take from settings how much is judged."""
        self.traces, self.seed, self.cover_traces = settings.traces, settings.seed, settings.cover_traces
        self.clauses = settings.alone

    @property
    def few(self) -> bool:
        """Whether this is a run of few traces, as one on single clauses is."""
        return self.traces < FEW or bool(self.clauses)

    @contextmanager
    def judging(self, check: str) -> Iterator[Tally]:
        """A fresh tally for one check."""
        self.check, self.tally, self.budget_used, self.cut_short = check, Tally(), 0.0, False
        self.failures.begin_check()
        yield self.tally

    @property
    def kept(self) -> list[Failure]:
        """The failures that this check keeps."""
        return self.tally.failures

    def session(self, observe: tuple[str, ...]) -> Performs:
        """What performs a trace on the adapter."""
        return RemoteSession(self.worker, observe)

    def run(self, trace: Trace, watch: bool = False, past: bool = False) -> TrialResult:
        """One trial, counted nowhere. A process whose memory has grown much is started anew before it."""
        return self._on(trace, PLAIN, watch, past)

    def _on(self, trace: Trace, deviating: Deviating, watch: bool = False, past: bool = False) -> TrialResult:
        if self.worker.has_grown:
            self._anew()
            self.tally.restarts += 1
        judged = partial(trial.on, trace, adapter=self.adapter, watch=watch, past=past, deviating=deviating)
        seen = judged(performs=self.session)
        if seen.verdict == "OOM":
            seen = self._over_memory(judged, seen)
        self.operations += len(seen.steps)
        self.ran.append(trace)
        return seen

    def _anew(self) -> None:
        self.worker.close()
        self.ran.clear()

    def _over_memory(self, judged: Callable[..., TrialResult], seen: TrialResult) -> TrialResult:
        """A trial that went over the limit of memory again, in a new process whose memory is watched. If it holds
        now, what traces before left was too much; else see `over_memory`."""
        from kvconform.runner import over_memory  # few adapters take too much

        if over_memory.last(seen) in self.take_all:
            return seen
        self._anew()
        self.worker.watches = True
        try:
            seen = judged(performs=lambda observe: over_memory.OneByOne(self.session(observe)))
        finally:
            self.worker.watches = False
        if seen.verdict != "OOM":
            self.tally.restarts += 1
        elif over_memory.adds_up(seen, self.worker.used):
            return over_memory.up_to_the_limit(seen, self.worker.used, self.worker.memory_limit)
        else:
            self.take_all.add(over_memory.last(seen))
        return seen

    def trial(self, trace: Trace, watch: bool = False, reasons: bool = True) -> TrialResult:
        """One trial, counted nowhere. What differs may be known, with its reason if that is wanted; then what lies
        behind it is judged too."""
        seen = self.run(trace, watch)
        return self.explaining.explain(seen, partial(self._behind, seen), self.failure, reasons)

    def _behind(self, seen: TrialResult, deviating: Deviating) -> TrialResult:
        """A trial judged by oracles that deviate, as its session goes on. Where that cannot be, or something else
        differs, the whole trace runs again."""
        if seen.goes_on:
            behind = trial.behind(seen, deviating, self.adapter)
            self.operations += len(behind.steps) - len(seen.steps)
            if not behind.failed:
                return behind
        return self._on(seen.trace, deviating)

    def known_by(self, trace: Trace, why: str) -> TrialResult:
        """One trial up to its first difference, counted nowhere. The difference is known where the deviation with
        this reason alone explains it. What needs several deviations, or is an outcome, takes a whole trial."""
        if why not in self.explaining.each:
            return self.trial(trace)
        seen = self.run(trace)
        if seen.failed and self.explaining.alone(why, seen):
            seen.known = dict.fromkeys(seen.blamed, why)
        return seen

    def judged_by(self, trace: Trace, deviating: Deviating) -> TrialResult:
        """One trial by oracles that deviate, counted nowhere."""
        return self._on(trace, deviating)

    def afresh(self, trace: Trace, *before: Trace) -> TrialResult:
        """One trial in a new process, after these traces."""
        self._anew()
        for earlier in before:
            self.run(earlier)
        return self.trial(trace)

    def judge(self, trace: Trace, source: str, watch: bool = False) -> TrialResult:
        """One trial, counted; a failure is confirmed, shortened and kept. Where a run failed, its operations are
        looked at one by one, to tell where it begins."""
        seen = self.trial(trace, watch)
        if seen.failed and {op["times"] for op in trace.ops if op["op"] == RUN.name} == {1}:
            begins = self.trial(trace.one_by_one(), watch)
            seen = begins if begins.failed else seen
        self.tally.add(seen, source, self.check)
        if seen.known:
            self.failures.keep_known(seen, source)
        elif seen.failed:
            self.budget_used += 1 / ENOUGH[seen.verdict] + 1e-9
            self.failures.keep(seen, source)
        elif seen.over_memory:
            self.budget_used += 1 / ENOUGH["OOM"] + 1e-9
            self.cut_short = True
            self.tally.problems.append(seen.over_memory)
        return seen

    def fitting(self, traces: Iterable[Trace]) -> list[Trace]:
        """Fit the traces of this check to the adapter; note if nothing is left of what the check is about."""
        given = list(traces)
        suiting = list(fitted(given, self.adapter))
        if why := shut_out(given, suiting, self.check.partition("/")[0], self.adapter):
            self.tally.shuts_out(self.check, why)
        return suiting

    def judge_all(self, traces: Iterable[Trace], source: str, of: str, watch: bool = False) -> list[Trace]:
        """Judge many traces of a chapter, and note how much they covered; give those that held. Ends early when
        enough has failed."""
        covered = self.tally.coverage.setdefault(f"{source} {of}", empty_coverage())
        states, transitions, held = set[object](), set[object](), list[Trace]()
        for trace in traces:
            seen = self.judge(trace, source, watch)
            held += [] if seen.failed or seen.over_memory else [trace]
            count(covered, seen.trace, len(seen.steps))
            states.update(seen.states)
            transitions.update(zip(seen.states, map(str, seen.trace.ops[1:]), strict=False))
            if self.budget_used >= 1:
                break
        covered.states += len(states)
        covered.transitions += len(transitions)
        return held

    def explore(
        self,
        strategy: Callable[[], Any],
        of: str,
        number: int | None = None,
        known: Explored = NONE,
    ) -> None:
        """Judge traces of a chapter that a strategy draws, `number` or as many as others draw; then variations of
        those that held. A difference that shows in a trace as it was drawn is told of that trace. `known`: what is
        frozen of them. `strategy` makes the strategy, unless they are frozen."""
        traces = known.drawn or self._drawn(strategy(), number or self.traces)
        held = self.judge_all(self.fitting(traces), "explore", of, watch=True)
        varied = known.varied if len(held) == len(traces) else NONE.varied
        for form in VARIATIONS:
            if self.budget_used < 1:
                some = form.some(held, varied.get(form.name, {}))
                self.judge_all(form.suiting(some, self.adapter), form.name, of)

    def _drawn(self, strategy: Any, number: int) -> list[Trace]:
        """Draw traces until so many suit the adapter: of what some explorations draw, few suit a small claim."""
        from kvconform.generate.strategies import sample  # mostly all that is drawn is frozen

        drawn, suiting = list[Trace](), 0
        for trace in sample.each(strategy, MOST_DRAWN * number, self.seed):
            drawn.append(trace)
            suiting += len([*fitted((trace,), self.adapter)])
            if suiting == number:
                break
        return drawn

    def failure(self, seen: TrialResult, source: str = "", deterministic: bool = True) -> Failure:
        """The entry of a failed trial in this adapter's record. Its source may be unknown yet."""
        from kvconform.runner.failure_entry import failure  # it draws the steps, and most runs have nothing to draw

        return failure(seen, source, self.check, deterministic)

    def repeats(self, seen: TrialResult) -> None:
        """Count a failure like those that were made short before."""
        self.tally.repeated.append(f"{', '.join(seen.blamed)}: {seen.differences[0].message}")

    def broke(self, clause: str, message: str, verdict: VerdictName = "FAIL") -> None:
        """The clause's own example or law failed, or the worker ended in it."""
        self.tally.own.setdefault(clause, message)
        if verdict in ENOUGH and verdict != "FAIL":
            self.tally.ended.setdefault(clause, verdict)

    def relation_broke(self, clause: str, side: TrialResult, message: str) -> Failure:
        """A law failed, though each of its sides may be right by itself: keep and give the side that shows it."""
        side.differences.append(Difference("history", f"law {clause}: {message}"))
        kept = self.failure(side, "law")
        kept.clauses = [clause]
        kept.known = explanations(self.known, kept)
        self.tally.failures.append(kept)
        if not kept.expected:
            self.broke(clause, message)
        self.tally.failing += 1
        self.tally.present.update(places(clause, side.trace.kind))
        self.tally.differed[clause] += 1
        return kept

    def require_no_difference(self) -> None:
        """Raise Differs, which shows the shortest trace, if anything differed in this check; DiffersAsKnown if
        known deviations explain all that did."""
        unknown = [f for f in self.tally.failures if not f.expected]
        shortest = min(unknown or self.tally.failures, key=lambda f: len(f.steps), default=None)
        if unknown and shortest is not None:
            raise Differs(f"{shortest.verdict} {_told(shortest)}")
        if self.tally.repeated:
            raise Differs(f"FAIL {self.tally.repeated[0]}, as in checks before")
        if self.tally.own or self.tally.problems:
            raise Differs("; ".join([f"{c}: {m}" for c, m in self.tally.own.items()] + self.tally.problems))
        if shortest is not None:
            why = "; ".join(dict.fromkeys(shortest.known.values()))
            raise DiffersAsKnown(f"known: {why}. {_told(shortest)}")


def _told(failed: Failure) -> str:
    return f"{', '.join(failed.clauses) or 'no clause'}: {failed.message}\n  {failed.words}"


def opened(settings: Settings) -> AdapterUnderTest:
    """Start the worker and ask what the adapter claims. Raises BadInput, CannotRun, WorkerFailure."""
    worker = Worker(settings.argv, deadline=settings.deadline, memory_limit=settings.memory_limit)
    try:
        adapter = worker.describe()
        known = applying(settings.known, adapter)
        demand_loadable(known, adapter)
    except BaseException:
        worker.close()
        raise
    claimed = adapter.at_most("visible") if settings.level == "visible" else adapter
    under_test = AdapterUnderTest(worker, claimed, known=known)
    under_test.takes(settings)
    return under_test


def count(covered: Coverage, trace: Trace, done: int) -> None:
    """Count one trace; `done` of its operations were performed."""
    covered.traces += 1
    covered.operations += done
    names = [op["op"] for op in trace.ops[:done]]
    for pair in map(" ".join, pairwise(names)):
        covered.pairs[pair] = covered.pairs.get(pair, 0) + 1
