"""The entry of a failed trial in the record of a run."""

from __future__ import annotations

from kvconform.judge.steps import failing_steps
from kvconform.judge.trial_result import TrialResult
from kvconform.runner.verdict import outcomes
from kvspec.notation import sentence
from kvspec.records.run import Failure


def failure(
    seen: TrialResult,
    source: str,
    check: str = "",
    deterministic: bool = True,
) -> Failure:
    """The record's entry of a failed trial, with the clauses that known deviations explain."""
    trace, message = seen.trace.cut(len(seen.steps)), "; ".join(d.message for d in seen.differences[:3])
    if seen.behind:
        message += f"{outcomes.BEHIND}{seen.behind})"
    if seen.first:
        message += f" ({seen.first})"
    if not deterministic:
        message = f"nondeterministic: the same trace passed when run again. {message}"
    return Failure(
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
        steps=failing_steps(seen),
        deterministic=deterministic,
        known=dict(seen.known),
    )
