"""Which bug it is: the mutants that answer a failing trace, and its neighbours, exactly as the adapter did.

An adapter that answers like a mutant on the shortest trace that shows its bug may still have another one. So it is
asked about the traces beside that one too, whether the reference agrees with it there or not; and a mutant is named
only if the two cannot be told apart on any of them. Of several the one comes first that explains most of what is
known otherwise: the other failures of the run, and the worked examples of the chapters.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kvconform.diagnosis.compare import alike
from kvconform.diagnosis.neighbours import neighbours, probes
from kvconform.judge import trial
from kvconform.judge.trial import TrialResult
from kvconform.mutants import kinds
from kvconform.mutants.mutant import Mutant
from kvconform.mutants.time_limit import Hang, time_limit
from kvspec.contract import Description
from kvspec.reading.clauses import index
from kvspec.records.run import Failure, Fits, KnownBug
from kvspec.session.driver import Session
from kvspec.trace import Trace, from_json, opening

SECONDS, LONGEST = 6.0, 30.0
"""Seconds of this processor, and of the clock, that all of it may take; what is under way then is not told."""

EACH = 2.0
"""Seconds for one trace on one mutant."""

FAILURES = 6
"""Failures that are diagnosed, the shortest first."""

NAMED = 3
"""How many are named."""

Replays = Callable[[Trace], TrialResult]
"""One trace on the adapter, past its first difference."""

Diagnosis = dict[str, list[KnownBug]]
"""Who answers as the adapter did, by the key of each failure that was looked at; empty where nobody does."""


class TimeIsUp(Exception):
    """All there was to be spent is spent."""


def key(failure: Failure) -> str:
    """What a failure is known by."""
    return json.dumps(failure.trace, sort_keys=True)


def diagnosed(failures: Sequence[Failure], replay: Replays, adapter: Description) -> Diagnosis:
    """Look at the shortest of these failures. Never raises: what cannot be told is left out."""
    found: Diagnosis = {}
    if threading.current_thread() is threading.main_thread():
        with suppress(Exception):
            _Doctor(failures, replay, adapter).look(found)
    return found


@dataclass
class _Subject:
    """A mutant, its adapter once it is made, and the kinds of cache it can show in."""

    mutant: Mutant
    adapter: Any = None
    kinds: set[str] = field(default_factory=set)

    def made(self) -> Any:
        """The adapter."""
        self.adapter = self.adapter or self.mutant.adapter()
        return self.adapter


class _Doctor:
    """Looks at the failures of one run, and remembers what the adapter answered."""

    def __init__(self, failures: Sequence[Failure], replay: Replays, adapter: Description) -> None:
        self.failures = [f for f in failures if f.verdict == "FAIL" and f.deterministic]
        self.replay, self.about = replay, adapter
        self.until = time.process_time() + SECONDS, time.monotonic() + LONGEST
        self.answers: dict[str, TrialResult] = {}
        self.subjects = [_Subject(m, kinds=_kinds(m)) for m in kinds.planted().values()]

    def look(self, found: Diagnosis) -> None:
        """Note what is found, failure by failure, until the time is up."""
        before: list[_Subject] = []
        with suppress(TimeIsUp):
            for failure in self.failures[:FAILURES]:
                trace = from_json(failure.trace)
                if not self.of_adapter(trace).failed:
                    continue  # a law relates it to another one: by itself it is right
                fits = self.fits(before, trace) or self.fits(self.subjects, trace)
                found[key(failure)] = [self.named(s, trace) for s in self.ranked(fits, failure)[:NAMED]]
                before = [*fits, *(s for s in before if s not in fits)]

    def fits(self, subjects: Sequence[_Subject], trace: Trace) -> list[_Subject]:
        """Those that answer as the adapter did, here and on every neighbour."""
        kinds = _opened(trace)
        fitting = [s for s in subjects if s.kinds & kinds and self.same(s, trace)]
        for near in neighbours(trace, self.about) if fitting else ():
            fitting = [s for s in fitting if self.same(s, near)]
        return fitting

    def ranked(self, fits: list[_Subject], failure: Failure) -> list[_Subject]:
        """Most specific first: what explains most else; then by the clauses blamed; then what was really seen."""
        if len(fits) < 2:
            return fits
        clauses = dict.fromkeys(c for s in fits for c in s.mutant.clauses)
        others = [from_json(f.trace) for f in self.failures[:FAILURES]]
        told = [*others, *probes(clauses, from_json(failure.trace), self.about)]
        wrong = Counter(i for trace in told for i in self.mistaken(fits, trace))
        blamed = set(failure.clauses)
        return sorted(fits, key=lambda s: (wrong[s.mutant.id], -_shared(s.mutant, blamed), not s.mutant.link))

    def mistaken(self, fits: Sequence[_Subject], trace: Trace) -> list[str]:
        """Who answers otherwise than the adapter; nobody is asked who cannot be told from the others here."""
        answers = [self.of_mutant(s, trace) for s in fits]
        if all(a and answers[0] and alike(answers[0], a, self.about) for a in answers):
            return []
        found = self.of_adapter(trace)
        pairs = zip(fits, answers, strict=True)
        return [s.mutant.id for s, a in pairs if not (a and alike(found, a, self.about))]

    def named(self, subject: _Subject, trace: Trace) -> KnownBug:
        """As it stands in the record."""
        mutant = subject.mutant
        tried = 1 + len(neighbours(trace, self.about))
        return KnownBug(
            id=mutant.id,
            says=mutant.says,
            anomaly=mutant.anomaly,
            link=mutant.link,
            clauses=list(mutant.clauses),
            fits=Fits(traces=tried, of=tried),
        )

    def same(self, subject: _Subject, trace: Trace) -> bool:
        """Whether a mutant answers a trace as the adapter did."""
        found, other = self.of_adapter(trace), self.of_mutant(subject, trace)
        return other is not None and alike(found, other, self.about)

    def of_mutant(self, subject: _Subject, trace: Trace) -> TrialResult | None:
        """What a mutant answers; None where it hangs or breaks. Raises TimeIsUp."""
        self.spend()
        with suppress(Exception, Hang), time_limit(EACH):
            session = Session(subject.made(), trial.observables(self.about, trial.level_of(trace, self.about)))
            return trial.run(trace, session, self.about, past=True)
        return None

    def spend(self) -> None:
        """Go on only while there is time."""
        if time.process_time() > self.until[0] or time.monotonic() > self.until[1]:
            raise TimeIsUp

    def of_adapter(self, trace: Trace) -> TrialResult:
        """What the adapter answers. Raises TimeIsUp."""
        self.spend()
        name = json.dumps(trace.to_json(), sort_keys=True)
        if name not in self.answers:
            seen = self.replay(trace)
            if seen.failed and any(got.result in trial.VERDICT_OF for _, got in seen.steps):
                raise TimeIsUp  # whatever kills a worker, or holds it, costs too much to be done again
            self.answers[name] = seen
        return self.answers[name]


def _kinds(mutant: Mutant) -> set[str]:
    """The kinds of cache that a mutant's clauses speak of."""
    return {kind for c in mutant.clauses if c in index() for kind in index()[c].applies}


def _opened(trace: Trace) -> set[str]:
    return {trace.kind, *(opening(trace, op)[0] for op in trace.ops if op["op"] == "open")}


def _shared(mutant: Mutant, blamed: set[str]) -> float:
    """How far the clauses that a mutant breaks are those that were blamed: 0 to 1."""
    own = set(mutant.clauses)
    return len(blamed & own) / max(1, len(blamed | own))
