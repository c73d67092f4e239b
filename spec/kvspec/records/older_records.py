"""Leads older records on: what they say of a clause that became general, they then say of the general one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import singledispatch
from itertools import chain
from typing import Any

from msgspec.structs import replace

from kvspec.chapters import GENERAL
from kvspec.reading.moved_clauses import moved, now
from kvspec.records.mutants import Matrix, MutantRecord
from kvspec.records.run import BROKEN, HELD, ClauseRecord, Failure, Record, StepRecord

GRAVEST = (*BROKEN, "XFAIL", "HARNESS_ERROR", *reversed(HELD), "NOT_RUN", "NOT_CLAIMED")
"""Verdicts in the order in which one stands for several. What broke on one kind of cache is broken. What held on
one is judged, though others were not asked."""


@singledispatch
def led_on(record: Any) -> Any:
    """Give a record with today's ids of clauses. Most records name none that moved."""
    return record


@led_on.register
def _(record: Record) -> Record:
    if not any(clause.id in moved() for clause in record.clauses):
        return record
    clauses = [_one(group) for group in _groups(record.clauses)]
    return replace(
        record,
        clauses=clauses,
        summary=dict(Counter(clause.verdict for clause in clauses)),
        failures=[_failure(failure) for failure in record.failures],
    )


@led_on.register
def _(record: Matrix) -> Matrix:
    return replace(record, mutants=[_mutant(mutant) for mutant in record.mutants])


def _mutant(mutant: MutantRecord) -> MutantRecord:
    return replace(mutant, clauses=_ids(mutant.clauses), by=_ids(mutant.by))


def _ids(ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(map(now, ids)))


def _groups(clauses: Iterable[ClauseRecord]) -> list[list[ClauseRecord]]:
    """The clauses that one clause says today, each time."""
    found: dict[str, list[ClauseRecord]] = {}
    for clause in clauses:
        found.setdefault(now(clause.id), []).append(clause)
    return list(found.values())


def _one(group: Sequence[ClauseRecord]) -> ClauseRecord:
    """One clause for several: the gravest verdict, with all that exercised any of them."""
    gravest = min(group, key=lambda clause: GRAVEST.index(clause.verdict))
    if gravest.id not in moved():
        return gravest
    exercised = sum((Counter(clause.exercised) for clause in group), Counter[str]())
    judged = [clause.chapter for clause in group if clause.judged_at is not None]
    return replace(
        gravest,
        id=now(gravest.id),
        chapter=GENERAL,
        tests=list(dict.fromkeys(chain.from_iterable(clause.tests for clause in group))),
        exercised=dict(exercised),
        differed=sum(clause.differed for clause in group),
        suspicion=max(clause.suspicion for clause in group),
        ended_early={c: _ids(by) for clause in group for c, by in clause.ended_early.items()},
        kinds=judged,
    )


def _failure(failure: Failure) -> Failure:
    return replace(
        failure,
        clauses=_ids(failure.clauses),
        implicated=_ids(failure.implicated),
        known={now(clause): why for clause, why in failure.known.items()},
        steps=[_step(step) for step in failure.steps],
    )


def _step(step: StepRecord) -> StepRecord:
    return replace(step, clauses=_ids(step.clauses))
