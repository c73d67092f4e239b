"""The adapter under test: runs traces in its worker, shrinks failures, keeps the tally of a check."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from msgspec import UNSET

from kvconform.generate.fit_to_adapter import claimed, fitted
from kvconform.generate.shrink import shrink
from kvconform.generate.strategies import sample
from kvconform.judge import steps, trial
from kvconform.judge.storage import Difference
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.reference import Performs
from kvconform.runner.known import KnownDeviation, applying, explanations
from kvconform.runner.predecessors import LOOK_BACK, SEARCHES, predecessor
from kvconform.runner.settings import Settings, require_known
from kvconform.runner.tally import Tally, empty_coverage
from kvconform.worker.client import Worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Description
from kvspec.notation import sentence
from kvspec.reading.clauses import index
from kvspec.records.run import Cause, Coverage, Failure, Predecessor, VerdictName
from kvspec.trace import Trace

ENOUGH = {"FAIL": 40, "PROTOCOL": 5, "CRASH": 5, "OOM": 3, "HANG": 1}
"""Failing traces of one check after which its remaining traces are skipped, by verdict: they would tell nothing
new, and all but FAIL cost a process, or a deadline."""

ATTEMPTS = {"FAIL": 300, "CRASH": 30, "PROTOCOL": 30, "OOM": 4, "HANG": 3}
"""Replays spent on making a failing trace short, by verdict: a hang costs its deadline each time."""


SAME = {"FAIL": 8}
"""When this many failing traces of one check, clause and cause were made short and proved to be a known
deviation, others like them are not made short. One for other verdicts."""


class Differs(AssertionError):
    """The adapter does not do what the spec says."""


class DiffersAsKnown(Exception):
    """The adapter does not do what the spec says, and known deviations explain all of it."""


@dataclass
class AdapterUnderTest:
    """One adapter in one worker; one check at a time."""

    worker: Worker
    adapter: Description
    traces: int = 60
    """Traces that each exploration draws."""
    seed: int = 0
    cover_traces: int = 0
    """Cover traces judged of each chapter, a sample of all; 0 for all."""
    known: tuple[KnownDeviation, ...] = ()
    """Failures that are expected of it."""
    tally: Tally = field(default_factory=Tally)
    """What the check at hand showed."""
    check: str = ""
    operations: int = 0
    """Operations judged since the start."""
    confirmed: set[tuple[str, str]] = field(default_factory=set)
    """Verdict and clause of every failure that repeated and was shortened, in any check."""
    budget_used: float = 0.0
    """Share of this check's failure budget used; at 1.0 its remaining traces are skipped."""
    recognised: Counter[tuple[str, Cause]] = field(default_factory=Counter)
    """Traces of this check that proved to be a known deviation when they were made short, by clause and cause."""
    ran: deque[Trace] = field(default_factory=lambda: deque(maxlen=LOOK_BACK + 1))
    """The traces that ran last in the worker's process, the newest at the end."""
    alone: set[tuple[str, Cause]] = field(default_factory=set)
    """Clause and cause of every failure that repeated in a new process, in any check."""
    searches: int = 0
    """Searches of this check for a trace that a failure needs before it."""

    @contextmanager
    def judging(self, check: str) -> Iterator[Tally]:
        """A fresh tally for one check."""
        self.check, self.tally, self.budget_used, self.recognised = check, Tally(), 0.0, Counter()
        self.searches = 0
        yield self.tally

    def session(self, observe: tuple[str, ...]) -> Performs:
        """What performs a trace on the adapter."""
        return RemoteSession(self.worker, observe)

    def run(self, trace: Trace, watch: bool = False, past: bool = False) -> TrialResult:
        """One trial, counted nowhere."""
        level = trial.level_of(trace, self.adapter)
        session = self.session(trial.observables(trace, self.adapter, level))
        seen = trial.run(trace, session, self.adapter, level, watch, past)
        self.operations += len(seen.steps)
        self.ran.append(trace)
        return seen

    def afresh(self, trace: Trace, *before: Trace) -> TrialResult:
        """One trial in a new process, after these traces."""
        self.worker.close()
        self.ran.clear()
        for earlier in before:
            self.run(earlier)
        return self.run(trace)

    def judge(self, trace: Trace, source: str, watch: bool = False) -> TrialResult:
        """One trial, counted; a failure is confirmed, shortened and kept."""
        seen = self.run(trace, watch)
        self.tally.add(seen, source, self.check)
        if seen.failed:
            self.budget_used += 1 / ENOUGH[seen.verdict] + 1e-9
            seen.known = self._keep(seen, source)
        return seen

    def judge_all(self, traces: Iterable[Trace], source: str, of: str, watch: bool = False) -> None:
        """Judge many traces of a chapter, and note how much they covered. Ends early when enough has failed."""
        covered = self.tally.coverage.setdefault(f"{source} {of}", empty_coverage())
        states, transitions = set[object](), set[object]()
        for trace in traces:
            seen = self.judge(trace, source, watch)
            count(covered, trace, len(seen.steps))
            states.update(seen.states)
            transitions.update(zip(seen.states, map(str, trace.ops[1:]), strict=False))
            if self.budget_used >= 1:
                break
        covered.states += len(states)
        covered.transitions += len(transitions)

    def explore(self, strategy: Any, of: str) -> None:
        """Judge traces of a chapter that a strategy draws."""
        traces = sample.some(strategy, self.traces, self.seed)
        self.judge_all(fitted(traces, self.adapter), "explore", of, watch=True)

    def _keep(self, seen: TrialResult, source: str) -> bool:
        """Keep the shortest trace for each clause and cause of this failure that has none yet in this check.

        What kills the worker is confirmed and shortened once for each clause in the whole run. Tells whether known
        deviations explain all of it.
        """
        if seen.verdict != "FAIL" and self.confirmed >= {(seen.verdict, c) for c in seen.blamed or ("",)}:
            if not self.tally.failures:
                self._add(seen, source)
            return False
        earlier = [*self.ran][:-1]
        again = self.run(seen.trace.cut(len(seen.steps)))
        if not again.failed:
            return self._keep_after(seen, source, earlier)
        known = [self._keep_one(seen, clause, source, earlier) for clause in seen.blamed or ("",)]
        return all(known)

    def _keep_one(self, seen: TrialResult, clause: str, source: str, earlier: Sequence[Trace]) -> bool:
        """Keep this failure for one clause; tell whether a known deviation explains it."""
        if clause in self._kept(seen.cause):
            return False
        if self.recognised[clause, seen.cause] >= SAME.get(seen.verdict, 1):
            return True
        short = self._shortest(seen, clause)
        if not self._is_known(short, clause) and not self._repeats(short, clause):
            if not self.afresh(seen.trace.cut(len(seen.steps))).failed:
                return self._keep_after(seen, source, earlier)
            short = seen  # only what ran before made its shorter traces fail
        kept = self._add(short, source)
        self.recognised[clause, seen.cause] += clause in kept.known
        if not kept.expected:
            kept.clauses += [c for c in short.wrote if c not in kept.clauses]
            kept.implicated = [c for c in kept.implicated if c not in kept.clauses]
            self.confirmed |= {(short.verdict, c) for c in short.blamed or ("",)}
        return clause in kept.known

    def _repeats(self, short: TrialResult, clause: str) -> bool:
        """Tell whether it fails in a new process too. Tried until it did once for the clause and cause."""
        failing = clause, short.cause
        if failing not in self.alone and self.afresh(short.trace).failed:
            self.alone.add(failing)
        return failing in self.alone

    def _keep_after(self, seen: TrialResult, source: str, earlier: Sequence[Trace]) -> bool:
        """Keep a failure that does not repeat by itself, with the trace that it needs before it if there is one."""
        needy = {c for f in self.tally.failures if f.after is not UNSET for c in f.clauses or ("",)}
        if needy >= set(seen.blamed or ("",)):
            return False
        self.searches += 1
        found = predecessor(seen, earlier, self.afresh) if self.searches <= SEARCHES else None
        if found is None:
            return self._add(seen, source, deterministic=False).expected
        again, before = found
        kept = self._add(again, source)
        kept.after = Predecessor(words=sentence(before), trace=before.to_json())
        return kept.expected

    def _kept(self, cause: Cause) -> set[str]:
        """Clauses for which this check keeps a failure of this cause that is not known; of no clause: any failure
        will do."""
        clauses = {c for f in self.tally.failures if f.cause == cause for c in f.clauses if c not in f.known}
        return clauses | ({""} if self.tally.failures else set())

    def _shortest(self, seen: TrialResult, clause: str) -> TrialResult:
        """The same failure, of the same cause, on a shorter trace of what the adapter claims."""
        known = self._is_known(seen, clause)

        def fails(trace: Trace) -> int:
            if claimed(trace, self.adapter) != trace or not self.adapter.supports(trace.config):
                return 0
            other = self.run(trace)
            same = other.failed and (other.verdict, other.cause) == (seen.verdict, seen.cause)
            same = same and (not clause or clause in other.blamed)
            if same and self._is_known(other, clause) != known:  # else a failure slips into another
                same = not known and self._is_alike(seen, other)
            return max(1, len(other.steps)) if same else 0

        short = shrink(seen.trace.cut(len(seen.steps)), fails, ATTEMPTS[seen.verdict])
        final = self.run(short)
        return final if final.failed else seen

    def _is_known(self, seen: TrialResult, clause: str) -> bool:
        return bool(self.known) and clause in failure(seen, "", self.check, known=self.known).known

    def _is_alike(self, seen: TrialResult, short: TrialResult) -> bool:
        """Tell whether it became a known trace, and differs as before: in the same, after the same operation."""
        known = failure(short, "", self.check).words in {k.trace for k in self.known}
        return known and _difference(seen) == _difference(short)

    def _add(self, seen: TrialResult, source: str, deterministic: bool = True) -> Failure:
        kept = failure(seen, source, self.check, deterministic, self.known)
        if not kept.expected or all(kept.words != f.words for f in self.tally.failures):
            self.tally.failures.append(kept)
        return kept

    def broke(self, clause: str, message: str, verdict: VerdictName = "FAIL") -> None:
        """The clause's own example or law failed, or the worker ended in it."""
        self.tally.own.setdefault(clause, message)
        if verdict in ATTEMPTS and verdict != "FAIL":
            self.tally.ended.setdefault(clause, verdict)

    def relation_broke(self, clause: str, side: TrialResult, message: str) -> Failure:
        """A law failed, though each of its sides may be right by itself: keep and give the side that shows it."""
        side.differences.append(Difference("history", f"law {clause}: {message}"))
        kept = failure(side, "law", self.check)
        kept.clauses = [clause]
        kept.known = explanations(self.known, kept)
        self.tally.failures.append(kept)
        if not kept.expected:
            self.broke(clause, message)
        self.tally.failing += 1
        self.tally.present[clause] += 1
        self.tally.differed[clause] += 1
        return kept

    def explains(self, seen: TrialResult) -> bool:
        """Whether a trace failed only in deviations that are known, or that the adapter declares."""
        return seen.known or self._declares(seen.verdict, seen.blamed)

    def _declares(self, verdict: str, clauses: Collection[str]) -> bool:
        """Whether the adapter declares of each of these clauses that it breaks it."""
        return verdict == "FAIL" and bool(clauses) and set(clauses) <= set(self.adapter.known)

    def _why(self, failed: Failure) -> str:
        """Why a failure is known, in a file or by what the adapter declares; empty if it is not."""
        if failed.expected:
            return "; ".join(dict.fromkeys(failed.known.values()))
        declared = self._declares(failed.verdict, failed.clauses)
        return "; ".join(self.adapter.known[c] for c in failed.clauses) if declared else ""

    def require_no_difference(self) -> None:
        """Raise Differs, which shows the shortest trace, if anything differed in this check; DiffersAsKnown if
        known deviations explain all that did."""
        unknown = [f for f in self.tally.failures if not self._why(f)]
        shortest = min(unknown or self.tally.failures, key=lambda f: len(f.steps), default=None)
        own = {c: m for c, m in self.tally.own.items() if c not in self.adapter.known}
        if unknown and shortest is not None:
            raise Differs(f"{shortest.verdict} {_told(shortest)}")
        if own or self.tally.problems:
            raise Differs("; ".join([f"{c}: {m}" for c, m in own.items()] + self.tally.problems))
        if shortest is not None:
            raise DiffersAsKnown(f"known: {self._why(shortest)}. {_told(shortest)}")
        if self.tally.own:
            clause, message = next(iter(self.tally.own.items()))
            raise DiffersAsKnown(f"known: {self.adapter.known[clause]}. {clause}: {message}")


def _told(failed: Failure) -> str:
    return f"{', '.join(failed.clauses) or 'no clause'}: {failed.message}\n  {failed.words}"


def opened(settings: Settings) -> AdapterUnderTest:
    """Start the worker and ask what the adapter claims. Raises BadInput, CannotRun, WorkerFailure."""
    worker = Worker(settings.argv, deadline=settings.deadline, memory_limit=settings.memory_limit)
    try:
        adapter = worker.describe()
        for name in adapter.known:
            require_known(f"clause in what {adapter.name} declares as known,", name, tuple(index()))
        known = applying(settings.known, adapter)
    except BaseException:
        worker.close()
        raise
    claimed = adapter.at_most("visible") if settings.level == "visible" else adapter
    return AdapterUnderTest(worker, claimed, settings.traces, settings.seed, settings.cover_traces, known)


def _difference(seen: TrialResult) -> tuple[str, str, set[str]]:
    """In what a failure differs, after which operation, and which clauses it fails."""
    return seen.differences[0].field, seen.trace.ops[len(seen.steps) - 1]["op"], set(seen.blamed)


def count(covered: Coverage, trace: Trace, done: int) -> None:
    """Count one trace of which `done` operations were performed."""
    covered.traces += 1
    covered.operations += done
    names = [op["op"] for op in trace.ops[:done]]
    for pair in map(" ".join, pairwise(names)):
        covered.pairs[pair] = covered.pairs.get(pair, 0) + 1


def failure(
    seen: TrialResult,
    source: str,
    check: str,
    deterministic: bool = True,
    known: Iterable[KnownDeviation] = (),
) -> Failure:
    """A failed trial as it stands in the record, with what known deviations explain of it."""
    trace, message = seen.trace.cut(len(seen.steps)), "; ".join(d.message for d in seen.differences[:3])
    if not deterministic:
        message = f"nondeterministic: the same trace passed when run again. {message}"
    found = Failure(
        verdict=seen.verdict,
        cause=seen.cause,
        clauses=list(seen.blamed),
        implicated=list(seen.implicated),
        source=source,
        test=check,
        oracle=seen.oracle,
        field=seen.differences[0].field,
        message=message,
        words=sentence(trace),
        trace=trace.to_json(),
        steps=steps.failing_steps(seen),
        deterministic=deterministic,
    )
    found.known = explanations(known, found)
    return found
