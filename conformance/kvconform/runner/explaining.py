"""Explains what an adapter does otherwise by what it is known to do, and judges what lies behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.deviating import Deviating
from kvconform.runner.verdict.known import KnownDeviation
from kvspec.contract import Description
from kvspec.records.run import Failure


@dataclass(frozen=True)
class Explaining:
    """The known deviations of an adapter."""

    entries: tuple[KnownDeviation, ...]
    adapter: Description
    explained: Callable[[TrialResult, Deviating], bool]
    """Whether an adapter that deviates in a way answers as was seen, up to the first difference."""

    @cached_property
    def of_models(self) -> tuple[KnownDeviation, ...]:
        """The entries that are models."""
        return tuple(k for k in self.entries if k.is_model)

    @cached_property
    def all(self) -> Deviating:
        """All models together: the engine deviates in all these ways."""
        return _deviating(self.of_models)

    @cached_property
    def each(self) -> dict[str, Deviating]:
        """Each model alone, by its reason."""
        return {k.because: _deviating([k]) for k in self.of_models}

    def explain(
        self,
        seen: TrialResult,
        again: Callable[[Deviating], TrialResult],
        told: Callable[[TrialResult], Failure],
        reasons: bool = True,
    ) -> TrialResult:
        """The trial as known, if what differs is known and nothing else differs behind it; else what is not known.

        `again` judges the trace anew by other oracles; `told` makes the record's entry of a failure. Without
        `reasons` nobody is told which of the models it is: that takes a trial by each of them.
        """
        if not seen.failed or not self.entries or not seen.blamed:
            return seen
        if self.of_models and (behind := self._by_models(seen, again)):
            why = self.reason(seen) if reasons else "known"
            if not behind.failed:
                seen.known, seen.later = dict.fromkeys(seen.blamed, why), behind.steps[len(seen.steps) :]
                return seen
            behind.behind = why
            seen = behind
        failure = told(seen)
        outcome = next((k for k in self.entries if k.is_outcome(failure)), None)
        seen.known = dict.fromkeys(seen.blamed, outcome.because) if outcome else {}
        return seen

    def _by_models(self, seen: TrialResult, again: Callable[[Deviating], TrialResult]) -> TrialResult | None:
        """The trial as the models judge it; None if it differs from them where it differs from the spec, or before.
        What ended the worker is not run again."""
        if len(seen.steps) == len(seen.trace.ops) or seen.verdict != "FAIL":
            return replace(seen, differences=[]) if self.explained(seen, self.all) else None
        behind = again(self.all)
        return None if behind.failed and len(behind.steps) <= len(seen.steps) else behind

    def reason(self, seen: TrialResult) -> str:
        """The reason of the model that explains the first difference alone; of those that are needed together."""
        if len(self.each) == 1:
            return next(iter(self.each))
        alone = (why for why in self.each if self.alone(why, seen))
        return next(alone, "") or "; ".join(why for why in self.each if self._needed(why, seen))

    def alone(self, why: str, seen: TrialResult) -> bool:
        """Whether the model of this reason explains the first difference, without any other."""
        return self.explained(seen, self.each[why])

    def _needed(self, why: str, seen: TrialResult) -> bool:
        others = _deviating(k for k in self.of_models if k.because != why)
        return not self.explained(seen, others)


def _deviating(entries: Iterable[KnownDeviation]) -> Deviating:
    """What all these entries change of the oracles together. Raises BadInput that names what cannot be loaded."""
    from kvconform.runner.verdict import models  # most adapters are not known to deviate

    return models.deviating(entries)


def demand_loadable(entries: Sequence[KnownDeviation], adapter: Description) -> None:
    """Load all models, so that what is wrong with one is told at once. Raises BadInput."""
    if entries:
        from kvconform.runner.verdict import models

        models.demand_claimed(entries, adapter)
        models.deviating(entries)
