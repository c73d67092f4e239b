"""What an adapter sends is dropped once it is compared: a trial holds no more than its budget."""

from __future__ import annotations

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.judge import kept_arrays, trial
from kvconform.judge.kept_arrays import KeptArrays
from kvconform.judge.trial_result import TrialResult
from kvspec.contract import description
from kvspec.notation import from_sentence
from kvspec.session.driver import Session
from kvspec.session.step import Step

TRACE = from_sentence("ring window=3: " + "; ".join(["append 1"] * 30))


def held(seen: TrialResult, of: int) -> int:
    """Bytes of the arrays that the oracle (0) or the adapter (1) has left in a trial, each array once."""
    arrays = [a for pair in seen.steps for a in pair[of].arrays.values() if a is not None]
    return sum({id(a): a.nbytes for a in arrays}.values())


def judged(level: str) -> TrialResult:
    adapter = Reference()
    return trial.run(TRACE, Session(adapter), description(adapter.describe()), level)


def test_older_arrays_go_when_newer_ones_come(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = held(judged("visible"), 1)
    monkeypatch.setattr(kept_arrays, "BUDGET", whole // 2)
    seen = judged("visible")
    assert not seen.failed and len(seen.steps) == 30
    assert whole // 4 < held(seen, 1) <= whole // 2 and seen.steps[-1][1].arrays and not seen.steps[0][1].arrays


def test_arrays_that_equal_the_oracles_are_held_once() -> None:
    seen = judged("storage")
    assert not seen.failed and held(seen, 1)
    assert all(got.arrays[name] is array for want, got in seen.steps for name, array in want.arrays.items())


def test_the_newest_step_keeps_its_arrays_even_over_the_budget() -> None:
    kept, steps = KeptArrays(10), [Step(arrays={"state.k": np.zeros(n, np.uint8)}) for n in (4, 5, 4, 99)]
    for step in steps:
        kept.keep(step)
    assert [bool(step.arrays) for step in steps] == [False, False, False, True]
    kept.keep(small := Step(arrays={"state.k": np.zeros(2, np.uint8), "state.v": None}))
    assert small.arrays and not steps[-1].arrays
