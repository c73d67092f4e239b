"""What a run observed of an adapter, and whether what it claims lets a clause be exercised at all.

A clause that held is no PASS if a breach could have shown in something that was not observed. What can be exercised
follows from the description alone: a cache that fails early claims as much as one that is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain

from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvspec.contract import Description, Lengths
from kvspec.reading.clauses import Clause, index
from kvspec.registry import CACHES, HANDED_OUT, KINDS, RECORDS, needed, opened
from kvspec.trace import Trace

TAKES = {
    **dict.fromkeys(Lengths._fields, "offset"),
    **dict.fromkeys(("history", "sees"), "history"),
    "can": "ask",
    "view": "view",
}
"""The ability of a cache of one sequence that each observable takes."""

OUTSIDE = "rows outside the window"
"""The part of a ring that cannot be seen at level visible without masks."""

COPIED = "who owns the engine's arrays: those of the wire are copies"
"""What an engine in another process does not show, unless its process overwrites arrays itself: see WIRE.md."""

ALWAYS = ("result", "intact")
"""Observables that every adapter shows."""

OWNERSHIP = frozenset(opened(kind).ownership for kind in KINDS)
"""The clauses that leave arrays to their caller."""


def unobserved(clause: Clause, adapter: Description, level: str) -> list[str]:
    """Give the observables that would show a breach of the clause but are not observed."""
    kinds = [kind for kind in clause.applies if kind in adapter.chapters]
    apart = [[kind] for kind in kinds] if clause.general else [kinds]
    each = ((seen, together) for seen in clause.seen_in for together in apart)
    return list(dict.fromkeys(name for seen, on in each for name in _missing(seen, on, adapter, level)))


def _missing(seen: str, kinds: list[str], adapter: Description, level: str) -> Iterator[str]:
    """Yield the observable, or what is not seen of it."""
    caches = [kind for kind in kinds if kind in CACHES]
    if seen in TAKES and caches == kinds and all(TAKES[seen] in adapter.chapters[kind].without for kind in kinds):
        yield seen
    shown_in = HANDED_OUT.get(seen)
    pools = [kind for kind in kinds if kind not in CACHES and shown_in in RECORDS[kind].observe]
    if pools and shown_in not in adapter.observed(pools):
        yield seen
    if seen == "intact" and not adapter.overwrites:
        yield COPIED
    masked = "mask" in adapter.observed(kinds)
    if seen == "mask" and not masked:
        yield seen
    padded = any("sees" in RECORDS[kind].observe for kind in kinds)
    if seen == "sees" and padded and "sees" not in adapter.observed(kinds):
        yield seen
    windowed = [adapter.chapters[kind] for kind in caches if "window" in needed(kind)]
    untold = any(claim.dialect("keeps") != "window - 1" for claim in windowed)
    handed_out = "history" in adapter.observed(kinds)
    if seen in ("sees", "history") and level == "visible" and handed_out and untold and not masked:
        yield OUTSIDE


def answered_by_adapter(clause: Clause, adapter: Description) -> bool:
    """Tell whether every observable that would show a breach of the clause is the adapter's answer, not its
    engine's. For clauses about who owns arrays, tell whether the arrays are the adapter's."""
    if "intact" in adapter.answers and clause.id in OWNERSHIP:
        return True
    shown = set(clause.seen_in).difference(ALWAYS)
    return bool(shown) and shown <= adapter.answers


def exercisable(clause: Clause, adapter: Description) -> bool:
    """Tell whether examples of a clause, fitted to the claim, exercise it in what it is about on a cache that
    is right."""
    if clause.law:
        return False
    seen = (_seen(trace, adapter) for trace in _examples(clause, adapter))
    first = next((each for each in seen if clause.id in each.exercised()), None)
    if first is None or not shown_with_rows(clause):
        return first is not None
    return any(clause.id in each.with_rows() for each in chain([first], seen))  # no more of them run than needed


def shown_with_rows(clause: Clause) -> bool:
    """Tell whether its own worked examples exercise it in an operation that is done, and not refused, after rows
    were taken."""
    return _shown_with_rows(clause.id)


@cache
def _shown_with_rows(id: str) -> bool:
    from kvconform.oracle.reference import CitingReference, claims  # most clauses held: they were exercised

    clause = index()[id]
    traces = [example.trace for example in clause.examples]
    return any(id in trial.run(t, CitingReference(), claims(), clause.level).with_rows() for t in traces)


def _examples(clause: Clause, adapter: Description) -> Iterator[Trace]:
    """The clause's examples as the adapter is judged on them: on their own kind, or on others that it claims."""
    from kvconform.generate.claims.other_kinds import moved  # most clauses were exercised

    own = [example.trace for example in clause.examples]
    kinds = [kind for kind in clause.applies if kind in adapter.chapters]
    others = (moved(trace, kind) for trace in own if trace.kind not in adapter.chapters for kind in kinds)
    return fitted(chain(own, (trace for trace in others if trace is not None)), adapter)


def _seen(trace: Trace, adapter: Description) -> TrialResult:
    from kvconform.oracle.reference import CitingReference

    return trial.on(trace, lambda observe: CitingReference(observe=observe), adapter)
