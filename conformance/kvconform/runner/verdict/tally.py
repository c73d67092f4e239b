"""What the traces of one check, or of a whole run, showed of each clause. Tallies can be merged, and are kept in
the journal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import sqrt
from typing import Any

import msgspec

from kvconform.judge.trial_result import TrialResult
from kvspec.contract import METERED
from kvspec.reading.clauses import index
from kvspec.records.run import Coverage, Failure, KnownBug, Residency, VerdictName

Counts = Mapping[str, int]
"""The counts of a meter."""


@dataclass
class Tally:
    """Counts by clause. A trace counts once for each clause it exercised, whatever the number of steps."""

    exercised: dict[str, Counter[str]] = field(default_factory=dict)
    """Steps by clause and source."""
    kinds: dict[str, list[str]] = field(default_factory=dict)
    """The kinds of cache on which a general clause was exercised."""
    with_rows: set[str] = field(default_factory=set)
    """Clauses that an operation exercised which was done, and not refused, after rows were taken."""
    judged: int = 0
    """Trials, and questions to the adapter as a whole."""
    tests: dict[str, list[str]] = field(default_factory=dict)
    oracles: dict[str, str] = field(default_factory=dict)
    agreed: Counter[str] = field(default_factory=Counter)
    """Traces without a difference that exercised the clause; of a general one those of each kind too."""
    present: Counter[str] = field(default_factory=Counter)
    """Traces with a difference that exercised the clause, at whatever step; of a general one as above."""
    differed: Counter[str] = field(default_factory=Counter)
    """Traces whose differing step fails the clause."""
    failing: int = 0
    failures: list[Failure] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    """Failures like those that earlier checks made short, in a line each."""
    own: dict[str, str] = field(default_factory=dict)
    """Clauses whose own example or law failed, and how."""
    ended: dict[str, VerdictName] = field(default_factory=dict)
    """The clauses among them whose own example or law ended the worker, or broke the protocol."""
    early: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Clauses whose own example or law ended early: by its check the clauses whose failure ended it."""
    acted: dict[str, bool] = field(default_factory=dict)
    """Whether what exercised such a clause may be why its example ended."""
    unfinished: dict[str, str] = field(default_factory=dict)
    """Clauses whose own check the harness could not finish, and why."""
    coverage: dict[str, Coverage] = field(default_factory=dict)
    spent: dict[str, Residency] = field(default_factory=dict)
    """What operations cost, by kind, operation and condition."""
    problems: list[str] = field(default_factory=list)
    restarts: int = 0
    """How often the worker was started anew, because its memory had grown."""
    shut_out: dict[str, str] = field(default_factory=dict)
    """Checks of which the claim shuts out every trace, and why."""
    entries: dict[str, str] = field(default_factory=dict)
    """The entries that would make failures known, with a model, by the key of the failure."""
    diagnosis: dict[str, list[KnownBug]] = field(default_factory=dict)
    """Known bugs that answer as the adapter did, by the key of the failure; see `kvconform.diagnosis.diagnose`."""

    def add(self, seen: TrialResult, source: str, check: str) -> None:
        """Count one trial."""
        for clause, steps in Counter(seen.judged()).items():
            self._exercise(clause, source, steps)
            self._tested(clause, check)
            self._asked(clause, seen.trace.kind)
            self.oracles[clause] = seen.oracle
        self.with_rows |= seen.with_rows()
        self.judged += 1
        self.differed.update(seen.blamed)
        if not seen.known:  # a known deviation tells nothing of which clause another failure is about
            counts, kind = self.present if seen.failed else self.agreed, seen.trace.kind
            counts.update(at for clause in seen.suspected() for at in places(clause, kind))
            self.failing += seen.failed
        for spent in seen.spent:
            self._spend((spent.kind, spent.op, spent.when), 1, spent.counts, spent.counts)

    def held(self, clause: str, source: str, check: str, seen: TrialResult) -> None:
        """Count a law or another statement about whole traces that held."""
        self._exercise(clause, source, 1)
        self.with_rows.add(clause)
        self.agreed.update(places(clause, seen.trace.kind))
        self.oracles.setdefault(clause, seen.oracle)
        self._tested(clause, check)
        self._asked(clause, seen.trace.kind)

    def shuts_out(self, check: str, why: str) -> None:
        """Note a check of which nothing could be judged within what the adapter claims."""
        self.shut_out.setdefault(check, why)

    def ended_early(self, clause: str, check: str, blamed: Iterable[str], suspected: bool = True) -> None:
        """Note that the clause's own example or law ended in a failure of others. No step exercises a law."""
        self.acted[clause] = self.acted.get(clause, False) or suspected
        if index()[clause].law:
            self.present.update(places(clause, check.partition("/")[0]))
        self.early.setdefault(clause, {}).setdefault(check, list(dict.fromkeys(blamed)))

    def not_finished(self, check: str, clause: str, why: str) -> None:
        """Note a check that ended in a failure of the harness; `clause` is its own, if it has one."""
        self.problems.append(f"harness: {check}: {why}")
        if clause:
            self.unfinished.setdefault(clause, why)

    @property
    def broken(self) -> bool:
        """Whether something failed that no known deviation explains, or the harness did."""
        known = bool(self.failures) and all(f.expected for f in self.failures)
        return bool(self.problems or self.repeated) or (bool(self.failures or self.own) and not known)

    def _exercise(self, clause: str, source: str, steps: int) -> None:
        if clause not in self.exercised:
            self.exercised[clause] = Counter()
        self.exercised[clause][source] += steps

    def _spend(self, what: tuple[str, str, str], steps: int, least: Counts, most: Counts) -> None:
        """Note the smallest and the largest of each count, by kind, operation and condition."""
        name = " ".join(what)
        if name not in self.spent:
            kind, op, when = what
            counts = [{n: counts[n] for n in METERED} for counts in (least, most)]
            self.spent[name] = Residency(kind=kind, op=op, when=when, steps=steps, least=counts[0], most=counts[1])
            return
        seen = self.spent[name]
        seen.steps += steps
        for n in METERED:
            if least[n] < seen.least[n]:
                seen.least[n] = least[n]
            if most[n] > seen.most[n]:
                seen.most[n] = most[n]

    def _tested(self, clause: str, check: str) -> None:
        checks = self.tests.setdefault(clause, [])
        if check not in checks:
            checks.append(check)

    def _asked(self, clause: str, kind: str) -> None:
        if len(places(clause, kind)) > 1:
            kinds = self.kinds.setdefault(clause, [])
            kinds += [kind] if kind not in kinds else []

    def suspicion(self, clause: str) -> float:
        """How well traces that differ and traces that agree single the clause out, 0 to 1. A general clause may be
        broken on one kind alone, so the kind counts that singles it out best.

        The Ochiai coefficient of spectrum-based fault localisation (Abreu, Zoeteweij, van Gemund 2006):
        `present / sqrt(failing * (present + agreed))`.
        """
        on = [at for at in self.present if at.startswith(f"{clause} ")]
        return max(self._singled_out(at) for at in (clause, *on))

    def _singled_out(self, at: str) -> float:
        present = self.present[at]
        return present / sqrt(self.failing * (present + self.agreed[at])) if present else 0.0

    def merge(self, other: Tally) -> None:
        """Add what another tally counted."""
        for clause, counts in other.exercised.items():
            for source, steps in counts.items():
                self._exercise(clause, source, steps)
        for clause, checks in other.tests.items():
            for check in checks:
                self._tested(clause, check)
        for clause, kinds in other.kinds.items():
            for kind in kinds:
                self._asked(clause, kind)
        self.with_rows |= other.with_rows
        self.judged += other.judged
        self.oracles |= other.oracles
        for name in ("agreed", "present", "differed"):
            getattr(self, name).update(getattr(other, name))
        self.failing += other.failing
        self.failures += other.failures
        self.repeated += other.repeated
        self.own = other.own | self.own
        self.ended = other.ended | self.ended
        for clause, checks_ended in other.early.items():
            self.early[clause] = checks_ended | self.early.get(clause, {})
            self.acted[clause] = self.acted.get(clause, False) or other.acted.get(clause, False)
        self.unfinished = other.unfinished | self.unfinished
        self.problems += other.problems
        self.restarts += other.restarts
        self.shut_out |= other.shut_out
        self.diagnosis |= other.diagnosis
        self.entries |= other.entries
        for spent in other.spent.values():
            self._spend((spent.kind, spent.op, spent.when), spent.steps, spent.least, spent.most)
        for name, c in other.coverage.items():
            _add(self.coverage.setdefault(name, empty_coverage()), c)

    def to_json(self) -> dict[str, Any]:
        """As it stands in the journal."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return document


@cache
def places(clause: str, kind: str) -> tuple[str, ...]:
    """Where traces of a kind count: for the clause, and of a general one also on this kind."""
    return (clause, f"{clause} {kind}") if clause in index() and index()[clause].general else (clause,)


def from_json(said: dict[str, Any]) -> Tally:
    """Read a tally back from the journal. Raises msgspec.ValidationError."""
    return msgspec.convert(said, Tally, dec_hook=counter)


def counter(_: type, counts: Counts) -> Counter[str]:
    """Read counts, for which msgspec has no type of its own."""
    return Counter(counts)


def empty_coverage() -> Coverage:
    """Nothing exercised."""
    return Coverage(traces=0, operations=0, states=0, transitions=0, pairs={})


def _add(total: Coverage, more: Coverage) -> None:
    for name in ("traces", "operations", "states", "transitions"):
        setattr(total, name, getattr(total, name) + getattr(more, name))
    for size, met in more.sizes.items():
        total.sizes[size] = sorted({*total.sizes.get(size, ()), *met})
    for pair, n in more.pairs.items():
        total.pairs[pair] = total.pairs.get(pair, 0) + n


@dataclass(frozen=True)
class CheckResult:
    """What one check showed."""

    check: str
    tally: Tally = field(default_factory=Tally)
    difference: str = ""
    """What differed, on the shortest trace; empty if nothing did."""
    known: str = ""
    """What differed and why, where known deviations explain all of it."""
    error: str = ""
    """The traceback, where the harness failed."""
    operations: int = 0
    seconds: float = 0.0
    memory: tuple[int, int] = (0, 0)
    """Peak resident bytes of the process that judged, and of its worker."""
    interrupted: bool = False
    """Whether its tally holds only what was judged before an interruption."""

    @property
    def unjudged(self) -> str:
        """Why no trace was judged."""
        why = "none of its traces is within what the adapter claims: its abilities, its dialects, its limits"
        return self.tally.shut_out.get(self.check, why)

    def dumps(self) -> str:
        """Write it as JSON, as the journal holds a tally: what crosses a network is read and not unpickled."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def loads(cls, text: str) -> CheckResult:
        """Read it. Raises msgspec.ValidationError."""
        return msgspec.json.decode(text, type=cls, dec_hook=counter)


def source_of(check: str) -> str:
    """Give the source of a check's traces, by its id: cover of `ring/cover/window=3`. Empty where it has none."""
    _, _, rest = check.partition("/")
    return rest.partition("/")[0]
