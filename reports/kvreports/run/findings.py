"""Where to look. First comes the clause to read, with the trace that shows it, then every other clause once, by
cause."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET

from kvreports.clauses import chapter_order, order
from kvreports.run.standing import WORDS
from kvspec.records.run import BROKEN, CAUSES, ClauseRecord, Failure, Record

SUSPECTS = 8
"""Clauses whose suspicion a page shows."""

OWN = "own example or law"
"""The cause for a clause that no failing trace shows: its own example or its law failed."""


@dataclass(frozen=True)
class Finding:
    """Clauses that broke in one way, the most important first, and the failure that shows the first one."""

    cause: str
    clauses: tuple[ClauseRecord, ...]
    failure: Failure | None
    """The shortest trace for the first clause; None if no trace shows it."""

    @property
    def ids(self) -> list[str]:
        """The ids of its clauses; if it broke no selected clause, those of the failure."""
        return [c.id for c in self.clauses] or (self.failure.clauses if self.failure else [])

    @property
    def verdict(self) -> str:
        """The verdict on the first clause."""
        return self.clauses[0].verdict if self.clauses else self.failure.verdict if self.failure else "FAIL"

    @property
    def title(self) -> str:
        """The words before the clauses, if this is the first finding of a report."""
        return "Known to deviate:" if self.verdict == "XFAIL" else "Look first at"

    @property
    def message(self) -> str:
        """The difference in words; for a known deviation also why it is known."""
        if self.verdict == "XFAIL" and self.clauses:
            return self.clauses[0].reason
        return self.failure.message if self.failure else self.clauses[0].reason if self.clauses else ""


def findings(record: Record) -> list[Finding]:
    """The finding to look at first, of one clause; then the others, by what went wrong and by chapter. Each clause
    is in one of them."""
    broken = suspects(record)
    by_cause: dict[tuple[str, str], list[ClauseRecord]] = {}
    for clause in broken[1:]:
        by_cause.setdefault((_cause(clause, _shown(clause.id, record)), clause.chapter), []).append(clause)
    groups = [broken[:1], *by_cause.values()] if broken else []
    return [_finding(clauses, record) for clauses in groups] or _unselected(record)


def _finding(clauses: list[ClauseRecord], record: Record) -> Finding:
    failure = _shown(clauses[0].id, record)
    return Finding(_cause(clauses[0], failure), tuple(clauses), failure)


def _unselected(record: Record) -> list[Finding]:
    """A failure that breaks no clause of the run; only if nothing else failed."""
    return [Finding(kind(f), (), f) for f in record.unexplained[:1]]


def suspects(record: Record) -> list[ClauseRecord]:
    """The clauses that broke, the one to look at first at the front; known deviations are the last.

    Clauses of the bug that was diagnosed come first: the cache does exactly what the bug does. Then the worst
    cause: a wrong row is silent, a missing check is not. Then the clauses that differing traces point at
    (`suspicion`); if they are equal, first the ones that a differing step fails.
    """
    broken = [c for c in record.clauses if c.verdict in (*BROKEN, "XFAIL")]
    named, worst = _diagnosed(record), _worst(record)
    return sorted(
        broken,
        key=lambda c: (
            c.verdict == "XFAIL",
            c.id not in named,
            worst.get(c.id, worst.get(_early(c), 0)),
            -round(c.suspicion, 2),
            not c.differed,
            -c.suspicion,
            chapter_order(c.chapter),
            order(c.id),
        ),
    )


def _worst(record: Record) -> dict[str, int]:
    """The rank of the worst cause of the failures that each clause explains. These are the failures of the clause
    itself, and those that exercised it before and fail only less suspicious clauses. A length that is wrong shows
    as a wrong row in the end."""
    suspicion = {c.id: c.suspicion for c in record.clauses}
    ranks: dict[str, int] = {}
    for failure in record.failures:
        most = max((suspicion.get(c, 0.0) for c in failure.clauses), default=0.0)
        before = [c for c in failure.implicated if suspicion.get(c, 0.0) > most]
        for clause in (*failure.clauses, *before):
            ranks[clause] = min(CAUSES.index(failure.cause), ranks.get(clause, len(CAUSES)))
    return ranks


def _early(clause: ClauseRecord) -> str:
    """A clause in whose failure the examples of this one ended; empty if there is none."""
    return next((other for blamed in clause.ended_early.values() for other in blamed), "")


def _diagnosed(record: Record) -> set[str]:
    """The clauses of the likeliest bug of the first failure that was diagnosed."""
    named = [f.diagnosis[0] for f in record.failures if f.diagnosis is not UNSET and f.diagnosis and not f.expected]
    return set(named[0].clauses) if named else set()


def _shown(clause: str, record: Record) -> Failure | None:
    """The failure that shows a clause broken; without one, the shortest failure that exercises the clause."""
    failed = [f for f in record.failures if clause in f.clauses]
    exercised = [f for f in record.failures if clause in f.implicated or clause in _last_step(f)]
    return min(failed or exercised, key=lambda f: (clause in f.known or f.expected, len(f.steps)), default=None)


def _last_step(failure: Failure) -> list[str]:
    return failure.steps[-1].clauses if failure.steps else []


def _cause(clause: ClauseRecord, failure: Failure | None) -> str:
    if clause.verdict == "XFAIL":
        return "known deviation"
    if failure is None:
        return OWN if clause.verdict == "FAIL" else WORDS[clause.verdict]
    return kind(failure)


def kind(failure: Failure) -> str:
    """What went wrong: wrong row, the adapter died, ..."""
    return failure.cause if failure.verdict == "FAIL" else WORDS[failure.verdict]


def failures(record: Record) -> list[tuple[Failure, list[str]]]:
    """Every failure once, the first finding's first, each with the clauses that it is shown for. Failures that are
    shown for no clause come last, with the clauses that they break."""
    clauses = [c for finding in findings(record) for c in finding.clauses]
    of = {id(f): (f, list[str]()) for clause in clauses if (f := _shown(clause.id, record))}
    for clause in clauses:
        if (failure := _shown(clause.id, record)) is not None:
            of[id(failure)][1].append(clause.id)
    rest = [(f, f.clauses) for f in record.failures if id(f) not in of]
    return [*of.values(), *rest]
