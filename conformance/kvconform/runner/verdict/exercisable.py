"""Whether what an adapter claims lets a clause be exercised. That follows from its description alone: a cache that
fails early claims as much as one that is right."""

from __future__ import annotations

from kvconform.generate.fit_to_adapter import fitted
from kvconform.generate.other_kinds import moved
from kvconform.judge import trial
from kvconform.oracle.reference import CitingReference
from kvspec.contract import Description
from kvspec.reading.clauses import Clause
from kvspec.trace import Trace


def exercisable(clause: Clause, adapter: Description) -> bool:
    """Tell whether worked examples of a clause, fitted to the claim, exercise it on a cache that is right."""
    return not clause.law and any(clause.id in _exercised(trace, adapter) for trace in _examples(clause, adapter))


def _examples(clause: Clause, adapter: Description) -> list[Trace]:
    """The clause's examples as the adapter is judged on them: on their own kind, or on others that it claims."""
    own = [example.trace for example in clause.examples]
    kinds = [kind for kind in clause.applies if kind in adapter.chapters]
    others = (moved(trace, kind) for trace in own if trace.kind not in adapter.chapters for kind in kinds)
    return list(fitted([*own, *(trace for trace in others if trace is not None)], adapter))


def _exercised(trace: Trace, adapter: Description) -> list[str]:
    return trial.on(trace, lambda observe: CitingReference(observe=observe), adapter).exercised()
