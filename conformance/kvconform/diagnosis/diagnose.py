"""Diagnosis: names the mutants that answer a failing trace, and its neighbours, exactly as the adapter did.

An adapter that answers like a mutant on the shortest failing trace may still have another bug. So both also run
the neighbours of that trace, failing or not, but not those that only show a missing check. A mutant is named only
if it answers like the adapter on all of them. If several do, the one comes first that explains most of the rest:
the other failures of the run, and the worked examples of the chapters.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from kvconform.diagnosis.compare import alike
from kvconform.diagnosis.neighbours import neighbours, probes
from kvconform.judge import trial
from kvconform.judge.trial_result import VERDICT_OF, TrialResult
from kvconform.mutants.known_bugs import known_bugs
from kvconform.mutants.mutant import Mutant
from kvconform.mutants.time_limit import Hang, time_limit
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

NAMED = 3
"""Bugs that are named for a failure, at most."""

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
                diagnosis[failure.key()] = [self.known_bug(s, trace) for s in self.ranked(fits, failure)[:NAMED]]
                likely = [*fits, *(s for s in likely if s not in fits)]

    def fits(self, suspects: Sequence[_Suspect], trace: Trace) -> list[_Suspect]:
        """The suspects that answer as the adapter did, to this trace and to every neighbour."""
        opened = _opened(trace)
        fits = [s for s in suspects if s.kinds & opened and self.same(s, trace)]
        for near in self.near(trace) if fits else ():
            fits = [s for s in fits if self.same(s, near)]
        return fits

    def near(self, trace: Trace) -> list[Trace]:
        """The neighbours that say something about a failure: not those on which the adapter takes what must be
        refused, unless the failure is about that. Real engines check little, and still have the bug."""
        every = neighbours(trace, self.about)
        return every if self.unchecked(trace) else [near for near in every if not self.unchecked(near)]

    def unchecked(self, trace: Trace) -> bool:
        """Whether the adapter takes something in this trace that must be refused, or says that it would."""
        steps = self.of_adapter(trace).steps
        return any((want.result, got.result) == ("refused", "ok") or _can(got) > _can(want) for want, got in steps)

    def ranked(self, fits: list[_Suspect], failure: Failure) -> list[_Suspect]:
        """Order: those that explain most other traces first; then by overlap with the blamed clauses; then real
        bugs."""
        if len(fits) < 2:
            return fits
        clauses = dict.fromkeys(c for s in fits for c in s.mutant.clauses)
        others = [from_json(f.trace) for f in self.failures[:FAILURES]]
        traces = [*others, *probes(clauses, from_json(failure.trace), self.about)]
        wrong = Counter(i for trace in traces for i in self.mistaken(fits, trace))
        blamed = set(failure.clauses)
        return sorted(fits, key=lambda s: (wrong[s.mutant.id], -_shared(s.mutant, blamed), not s.mutant.link))

    def mistaken(self, fits: Sequence[_Suspect], trace: Trace) -> list[str]:
        """The ids of suspects that answer differently from the adapter; none if all of them answer alike."""
        answers = [self.of_mutant(s, trace) for s in fits]
        if all(a and answers[0] and alike(answers[0], a, self.about) for a in answers):
            return []
        own = self.of_adapter(trace)
        pairs = zip(fits, answers, strict=True)
        return [s.mutant.id for s, a in pairs if not (a and alike(own, a, self.about))]

    def known_bug(self, suspect: _Suspect, trace: Trace) -> KnownBug:
        """The entry of a suspect in the record."""
        mutant = suspect.mutant
        return KnownBug(
            id=mutant.id,
            says=mutant.says,
            anomaly=mutant.anomaly,
            link=mutant.link,
            clauses=list(mutant.clauses),
            fits=Fits(traces=1 + len(self.near(trace)), of=1 + len(neighbours(trace, self.about))),
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
        text = json.dumps(trace.to_json(), sort_keys=True)
        if text not in self.answers:
            result = self.replay(trace)
            if result.failed and any(step.result in VERDICT_OF for _, step in result.steps):
                raise OutOfTime  # a worker that died or hung costs too much to run again
            self.answers[text] = result
        return self.answers[text]


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
