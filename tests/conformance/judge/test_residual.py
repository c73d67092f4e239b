"""Drafts that are kept beside a residual window are in the form, whichever way the round ends: at both levels."""

from __future__ import annotations

import pytest

from kvadapters.reference import Reference
from kvconform.judge import trial
from kvspec.contract import description
from kvspec.notation import from_sentence
from kvspec.session.driver import Session

ENDS = ("commit r 1", "choose r 0", "choose r 2", "abandon r")


@pytest.mark.parametrize("level", ["visible", "storage"])
@pytest.mark.parametrize("end", ENDS)
def test_the_reference_holds_behind_a_round(end: str, level: str) -> None:
    words = "speculate r A; draft r 3 fill=fine on=-1,0,0"
    trace = from_sentence(
        f"growing form=int8/2 residual=4: append 2 fill=fine; {words}; {end}; view; append 1 fill=fine; view"
    )
    adapter = Reference()
    result = trial.on(trace, lambda seen: Session(adapter, seen), description(adapter.describe()), level)
    assert not result.failed, result.differences
    assert len(result.steps) == len(trace.ops)
