"""Judges a log as any adapter is judged: the oracle performs its operations, and the observations are compared."""

from __future__ import annotations

from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvconform.log.log_file import Life
from kvconform.log.log_session import LoggedInputs, LoggedSession
from kvconform.oracle.deviating import PLAIN, Deviating
from kvconform.oracle.expected import Expected
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.operations.table import TAKES_ROWS, Operation, cache_of
from kvspec.session.step import Step


def judged(life: Life, adapter: Description, deviating: Deviating = PLAIN) -> TrialResult:
    """Judge one life, up to its first difference, at the level that the adapter claims. Raises BadInput for a line
    that lacks what this level needs. `deviating` changes the oracle as known deviations do."""
    inputs = LoggedInputs(life)
    seen = trial.run(life.trace, LoggedSession(life), adapter, trace_inputs=inputs, deviating=deviating)
    for i, (op, (want, got)) in enumerate(zip(life.trace.ops, seen.steps, strict=False)):
        missing = _missing(op, want, got, adapter) if want.result == got.result else []
        if missing:
            said = f"`{op['op']}` lacks {', '.join(missing)}, which level {seen.level} needs"
            raise BadInput(f"{life.where(i)}: {said}")
        plain = deviating is PLAIN  # a deviating oracle sees fewer or more rows, each of another name
        if plain and isinstance(want, Expected) and _one_name_twice(want, life, inputs, op):
            raise BadInput(
                f"{life.where(i)}: a query sees two rows of one name; level visible needs a name for each"
            )
    return seen


def _missing(op: Operation, want: Step, got: Step, adapter: Description) -> list[str]:
    """Name what the oracle expects of a step and the log leaves out."""
    arrays = [*want.arrays]
    if isinstance(want, Expected):
        arrays += [f"{name}.k" for name in want.rows]
        seen = adapter.observed() if want.sees is not None else ()
        arrays += ["history.k"] if "history" in seen and op["op"] in TAKES_ROWS else []
        arrays += ["mask"] if "mask" in seen else []
    names = [n for n in want.values if n not in got.values] + [n for n in arrays if n not in got.arrays]
    return [
        name for name in dict.fromkeys(n.removesuffix(".k").removesuffix(".v") for n in names) if name != "intact"
    ]


def _one_name_twice(want: Expected, life: Life, inputs: LoggedInputs, op: Operation) -> bool:
    """Tell whether the queries of an append or a draft see fewer names than rows."""
    if want.sees is None or op["op"] not in TAKES_ROWS or want.result != "ok":
        return False
    end, window = want.values.get("drafted", want.values.get("offset")), inputs.opened[cache_of(op)][1].window
    if end is None:
        return False  # the rows of a padded block are no run of positions
    stands = want.values.get("stand") or range(end - op["n"], end)  # drafts of branches say where they stand
    rows = [min(position + 1, window or position + 1) for position in stands]
    return [len(names or ()) for names in want.sees[0][0]] != rows
