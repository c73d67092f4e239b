"""A trial: one trace on the oracle here and on the adapter there, in lockstep, up to the first difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvconform.judge.levels import frozen_answers
from kvconform.judge.levels.frozen_trial import FrozenTrial
from kvconform.judge.lockstep import Performs, Trial, observables
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.deviating import PLAIN, Deviating
from kvconform.oracle.trace_inputs import TraceInputs
from kvspec.contract import Description
from kvspec.geometry import Config
from kvspec.operations.table import RUN, Operation, each_of
from kvspec.session.step import NOTHING, Inputs, Step
from kvspec.trace import Trace, looked_at


def level_of(trace: Trace, adapter: Description) -> str:
    """The level a trace is judged at: the lowest that the adapter claims of what the trace uses."""
    return adapter.lowest(looked_at(trace))


def run(
    trace: Trace,
    session: Performs,
    adapter: Description,
    level: str | None = None,
    watch: bool = False,
    past: bool = False,
    trace_inputs: TraceInputs | None = None,
    deviating: Deviating = PLAIN,
) -> TrialResult:
    """Judge an adapter's session on one trace, at the level claimed or at a lower one asked for.

    With `watch` the states that the oracle passes through are noted, to count what a source has exercised. With
    `past` the trial goes on past the first difference, to the end of the trace. `trace_inputs` makes the rows of a
    log by their names. `deviating` changes the oracle as known deviations do.
    """
    level = level or level_of(trace, adapter)
    plain = deviating is PLAIN and trace_inputs is None and not past
    plain = plain and (not watch or bool(trace.frozen and trace.frozen.states))
    if plain and frozen_answers.suffice(trace, adapter, level):
        return _frozen(trace, session, adapter, level, watch)
    return _judged(trace, session, adapter, level, watch, past, trace_inputs, deviating)


def _frozen(trace: Trace, session: Performs, adapter: Description, level: str, watch: bool) -> TrialResult:
    """Judge an adapter by what is known of the reference; if it differs, by the reference, to tell how."""
    known = FrozenTrial(trace, session, adapter, level, TraceInputs(trace, reads=False), PLAIN)
    if known.agrees():
        return known.result
    return _judged(trace, session if known.kept.dropped else Recorded(known.result), adapter, level, watch)


def _judged(
    trace: Trace,
    session: Performs,
    adapter: Description,
    level: str,
    watch: bool = False,
    past: bool = False,
    trace_inputs: TraceInputs | None = None,
    deviating: Deviating = PLAIN,
) -> TrialResult:
    """Judge an adapter's session by an oracle."""
    inputs, claimed = trace_inputs or TraceInputs(trace), deviating.claimed(adapter)
    judged = _trials(level)(trace, session, claimed, level, inputs, deviating)
    judged.watch, judged.past = watch, past
    return judged.run()


def _trials(level: str) -> type[Trial]:
    """The trials at a level. An oracle is read where it is asked: mostly frozen answers take its place."""
    if level == "storage":
        from kvconform.judge.levels.storage_trial import StorageTrial

        return StorageTrial
    from kvconform.judge.levels.visible_trial import VisibleTrial

    return VisibleTrial


def on(
    trace: Trace,
    performs: Callable[[tuple[str, ...]], Performs],
    adapter: Description,
    level: str | None = None,
    watch: bool = False,
    past: bool = False,
    deviating: Deviating = PLAIN,
) -> TrialResult:
    """Judge an adapter on one trace, as `run` does. `performs` makes a session that observes these observables."""
    level = level or level_of(trace, adapter)
    session = performs(observables(trace, adapter, level))
    return run(trace, session, adapter, level, watch, past, deviating=deviating)


class Recorded:
    """The answers of a trial again, as a session; behind them those of a session that goes on, if one is given.
    Else nothing is there: cache A was not opened, or the trial ended."""

    def __init__(self, seen: TrialResult, goes_on: Performs | None = None) -> None:
        self._begun, self._answers, self._goes_on = seen.begun, iter([got for _, got in seen.steps]), goes_on

    def begin(self, kind: str, config: Config) -> Step:
        """What was answered when cache A was opened."""
        return self._begun

    def do(self, op: Operation, inputs: Inputs = NOTHING) -> Step:
        """What was answered to the next operation, or is answered now."""
        known = next(self._answers, None)
        return known or (self._goes_on.do(op, inputs) if self._goes_on else Step("absent"))


class SeenInputs(TraceInputs):
    """The inputs that a trial had: its own oracle said which rows were taken, whatever another one says of them."""

    def __init__(self, seen: TrialResult) -> None:
        super().__init__(seen.trace)
        self._results = iter(_results(seen))

    def done(self, op: Operation, result: str) -> None:
        """Use up what the operation took then; behind the trial, what it takes now."""
        super().done(op, next(self._results, result))


def _results(seen: TrialResult) -> Iterator[str]:
    """What a trial's oracle said of each operation, those of runs among them."""
    for op, (want, _) in zip(seen.trace.ops, seen.steps, strict=False):
        before = range(len(each_of(op)) - 1 if op["op"] == RUN.name else 0)
        yield from ("refused" if number in want.missed else "ok" for number in before)
        yield from [want.result] * (2 if op["op"] == RUN.name else 1)


def behind(seen: TrialResult, deviating: Deviating, adapter: Description) -> TrialResult:
    """A trial whose session can go on, judged from its beginning by oracles that deviate: what was answered is not
    asked again."""
    again = Recorded(seen, seen.session)
    return run(seen.trace, again, adapter, seen.level, trace_inputs=SeenInputs(seen), deviating=deviating)


def explained(
    seen: TrialResult, deviating: Deviating, adapter: Description, trace_inputs: TraceInputs | None = None
) -> bool:
    """Whether an adapter that deviates in this way answers as was seen, up to the first difference."""
    trace, again, inputs = seen.trace.cut(len(seen.steps)), Recorded(seen), trace_inputs or SeenInputs(seen)
    return not run(trace, again, adapter, seen.level, trace_inputs=inputs, deviating=deviating).failed
