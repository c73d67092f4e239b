"""Diagnosis: names the mutants that answer a failing trace, and its neighbours, exactly as the adapter did.

An adapter that answers like a mutant on the shortest failing trace may still have another bug. So both also run
the neighbours of that trace, failing or not, but not those that only show a missing check. A mutant that answers
one of them otherwise is dropped. Mutants that are left are told from each other by traces on which they differ:
the other failures of the run, worked examples, covers. What is left then behaves alike, as far as was tried.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from kvconform.bugs.known_bugs import known_bugs
from kvconform.bugs.mutant import Mutant
from kvconform.bugs.time_limit import Hang, time_limit
from kvconform.diagnosis.compare import alike
from kvconform.diagnosis.neighbours import neighbours, probes, text_of
from kvconform.judge import trial
from kvconform.judge.trial_result import VERDICT_OF, TrialResult
from kvspec.contract import Description
from kvspec.reading.clauses import index
from kvspec.records.run import Failure, Fits, KnownBug
from kvspec.session.driver import Session
from kvspec.session.step import Step
from kvspec.trace import Trace, from_json, opening

SECONDS, LONGEST = 6.0, 30.0
"""Limits on processor seconds and clock seconds for the whole diagnosis. A failure that is unfinished then is left
out."""

EACH = 2.0
"""Seconds for one trace on one mutant."""

FAILURES = 6
"""The shortest failures, which are diagnosed."""

LEAST = 2
"""Neighbours on which a bug must show, to be named: one trace says too little of where a fault ends."""

Replay = Callable[[Trace], TrialResult]
"""Runs one trace on the adapter, past its first difference."""

Diagnosis = dict[str, list[KnownBug]]
"""The bugs that answer as the adapter did, by the key of each failure that was diagnosed; often none."""


class OutOfTime(Exception):
    """The time for diagnosis is used up."""


def diagnose(failures: Sequence[Failure], replay: Replay, adapter: Description) -> Diagnosis:
    """Diagnose the shortest of these failures. Never raises: what goes wrong is left out."""
    diagnosis: Diagnosis = {}
    if threading.current_thread() is threading.main_thread():
        with suppress(Exception):
            _Comparison(failures, replay, adapter).fill(diagnosis)
    return diagnosis


@dataclass
class _Suspect:
    """A mutant, and the kinds of cache it can show in."""

    mutant: Mutant
    kinds: set[str]

    @cached_property
    def adapter(self) -> Any:
        """Its adapter, made when it is needed first."""
        return self.mutant.adapter()


class _Comparison:
    """Compares the adapter's answers to the failing traces of one run with the answers of all known bugs."""

    def __init__(self, failures: Sequence[Failure], replay: Replay, adapter: Description) -> None:
        self.failures = [f for f in failures if f.verdict == "FAIL" and f.deterministic]
        self.replay, self.about = replay, adapter
        self.until = time.process_time() + SECONDS, time.monotonic() + LONGEST
        self.answers: dict[str, TrialResult] = {}
        self.near: dict[str, list[Trace]] = {}
        self.suspects = [_Suspect(m, _kinds(m)) for m in known_bugs().values()]

    def fill(self, diagnosis: Diagnosis) -> None:
        """Diagnose failure by failure, until the time is used up."""
        likely: list[_Suspect] = []
        with suppress(OutOfTime):
            for failure in self.failures[:FAILURES]:
                trace = from_json(failure.trace)
                if not self.of_adapter(trace).failed:
                    continue  # one side of a law: by itself it is right
                fits = self.fits(likely, trace) or self.fits(self.suspects, trace)
                fits = self.left(fits, trace)
                diagnosis[failure.key()] = [self.known_bug(s, trace) for s in ranked(fits, failure)]
                likely = [*fits, *(s for s in likely if s not in fits)]

    def fits(self, suspects: Sequence[_Suspect], trace: Trace) -> list[_Suspect]:
        """The suspects that answer as the adapter did, to this trace and to every neighbour; none if the fault
        shows on too few of these."""
        opened = _opened(trace)
        fits = [s for s in suspects if s.kinds & opened and self.same(s, trace)]
        for near in self.neighbours(trace) if fits else ():
            fits = self.alike_on(fits, near, trace)
            if not fits:
                return []
        return fits if fits and self.shown(trace)[0] >= LEAST else []

    def left(self, fits: list[_Suspect], trace: Trace) -> list[_Suspect]:
        """The suspects that answer as the adapter did where they differ from each other."""
        clauses = dict.fromkeys(c for s in fits for c in s.mutant.clauses)
        for tried in self.probes(clauses) if len(fits) > 1 else ():
            if len(fits) > 1 and self.differ(fits, tried):
                fits = self.alike_on(fits, tried, trace)
        return fits

    def probes(self, clauses: Iterable[str]) -> Iterator[Trace]:
        """The other failures of the run, and traces of these clauses."""
        yield from (from_json(f.trace) for f in self.failures[:FAILURES])
        yield from probes(clauses, self.about)

    def alike_on(self, fits: list[_Suspect], tried: Trace, trace: Trace) -> list[_Suspect]:
        """The suspects that answer as the adapter did; all, where it takes what must be refused and the failure is
        not about that. Real engines check little, and still have the bug."""
        if self.unchecked(tried) and not self.unchecked(trace):
            return fits
        return [s for s in fits if self.same(s, tried)]

    def differ(self, fits: Sequence[_Suspect], tried: Trace) -> bool:
        """Whether suspects answer a trace in different ways."""
        answers = [self.of_mutant(s, tried) for s in fits]
        return not all(a and answers[0] and alike(answers[0], a, self.about) for a in answers)

    def neighbours(self, trace: Trace) -> list[Trace]:
        """The neighbours of a trace, kept for the next time."""
        text = text_of(trace)
        if text not in self.near:
            self.near[text] = neighbours(trace, self.about)
        return self.near[text]

    def unchecked(self, trace: Trace) -> bool:
        """Whether the adapter takes something in this trace that must be refused, or says that it would."""
        steps = self.of_adapter(trace).steps
        return any((want.result, got.result) == ("refused", "ok") or _can(got) > _can(want) for want, got in steps)

    def shown(self, trace: Trace) -> tuple[int, int]:
        """The neighbours on which the adapter differs from the spec: those that a suspect must answer alike, and
        those that only show a missing check."""
        wrong = [near for near in self.neighbours(trace) if self.of_adapter(near).failed]
        left_out = 0 if self.unchecked(trace) else sum(map(self.unchecked, wrong))
        return len(wrong) - left_out, left_out

    def known_bug(self, suspect: _Suspect, trace: Trace) -> KnownBug:
        """The entry of a suspect in the record."""
        mutant, (shown, left_out) = suspect.mutant, self.shown(trace)
        return KnownBug(
            id=mutant.id,
            says=mutant.says,
            anomaly=mutant.anomaly,
            link=mutant.link,
            clauses=list(mutant.clauses),
            fits=Fits(traces=1 + shown, of=1 + shown + left_out),
        )

    def same(self, suspect: _Suspect, trace: Trace) -> bool:
        """Whether a suspect answers a trace as the adapter did."""
        own, other = self.of_adapter(trace), self.of_mutant(suspect, trace)
        return other is not None and alike(own, other, self.about)

    def of_mutant(self, suspect: _Suspect, trace: Trace) -> TrialResult | None:
        """The answers of a mutant; None if it hangs or breaks. Raises OutOfTime."""
        self.spend()
        with suppress(Exception, Hang), time_limit(EACH):
            return trial.on(trace, partial(Session, suspect.adapter), self.about, past=True)
        return None

    def spend(self) -> None:
        """Raise OutOfTime if there is no time left."""
        if time.process_time() > self.until[0] or time.monotonic() > self.until[1]:
            raise OutOfTime

    def of_adapter(self, trace: Trace) -> TrialResult:
        """The answers of the adapter, kept for the next time. Raises OutOfTime."""
        self.spend()
        text = text_of(trace)
        if text not in self.answers:
            result = self.replay(trace)
            if result.failed and any(step.result in VERDICT_OF for _, step in result.steps):
                raise OutOfTime  # a worker that died or hung costs too much to run again
            self.answers[text] = result
        return self.answers[text]


def ranked(fits: list[_Suspect], failure: Failure) -> list[_Suspect]:
    """Order bugs that behave alike. First come those that break most of the blamed clauses and little else; among
    equals, real bugs."""
    blamed = set(failure.clauses)
    return sorted(fits, key=lambda s: (-_shared(s.mutant, blamed), not s.mutant.link))


def _can(step: Step) -> bool:
    """Whether a cache says that it could go back."""
    return step.values.get("can") is True


def _kinds(mutant: Mutant) -> set[str]:
    """The kinds of cache that a mutant's clauses are about."""
    return {kind for c in mutant.clauses if c in index() for kind in index()[c].applies}


def _opened(trace: Trace) -> set[str]:
    return {trace.kind, *(opening(trace, op)[0] for op in trace.ops if op["op"] == "open")}


def _shared(mutant: Mutant, blamed: set[str]) -> float:
    """How much the clauses that a mutant breaks and those that were blamed overlap: 0 to 1."""
    own = set(mutant.clauses)
    return len(blamed & own) / max(1, len(blamed | own))
