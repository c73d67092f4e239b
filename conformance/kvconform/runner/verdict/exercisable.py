"""Whether what an adapter claims lets a clause be exercised. That follows from its description alone: a cache that
fails early claims as much as one that is right."""

from __future__ import annotations

from functools import cache

from kvconform.generate.fit_to_adapter import fitted
from kvconform.generate.other_kinds import moved
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.reference import CitingReference, claims
from kvspec.contract import Description
from kvspec.reading.clauses import Clause, index
from kvspec.trace import Trace


def exercisable(clause: Clause, adapter: Description) -> bool:
    """Tell whether examples of a clause, fitted to the claim, exercise it in what it is about on a cache that
    is right."""
    if clause.law:
        return False
    seen = [_seen(trace, adapter) for trace in _examples(clause, adapter)]
    rows = shown_with_rows(clause) if any(clause.id in each.exercised() for each in seen) else False
    return any(clause.id in (each.with_rows() if rows else each.exercised()) for each in seen)


def shown_with_rows(clause: Clause) -> bool:
    """Tell whether its own worked examples exercise it in an operation that is done, and not refused, after rows
    were taken."""
    return _shown_with_rows(clause.id)


@cache
def _shown_with_rows(id: str) -> bool:
    clause = index()[id]
    traces = [example.trace for example in clause.examples]
    return any(id in trial.run(t, CitingReference(), claims(), clause.level).with_rows() for t in traces)


def _examples(clause: Clause, adapter: Description) -> list[Trace]:
    """The clause's examples as the adapter is judged on them: on their own kind, or on others that it claims."""
    own = [example.trace for example in clause.examples]
    kinds = [kind for kind in clause.applies if kind in adapter.chapters]
    others = (moved(trace, kind) for trace in own if trace.kind not in adapter.chapters for kind in kinds)
    return list(fitted([*own, *(trace for trace in others if trace is not None)], adapter))


def _seen(trace: Trace, adapter: Description) -> TrialResult:
    return trial.on(trace, lambda observe: CitingReference(observe=observe), adapter)
