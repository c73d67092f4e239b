"""A failure of attention or of RoPE is drawn with its numbers: what was expected, and what was found."""

from __future__ import annotations

import pytest

from kvadapters.reference import Reference
from kvconform.bugs.known_bugs import known_bugs
from kvconform.bugs.real import rope
from kvconform.judge import steps, trial
from kvconform.judge.trial_result import TrialResult
from kvspec.notation import trace
from kvspec.session.driver import Session
from support.running.local_adapter import LocalAdapter


def failed(adapter: object, ops: str, level: str) -> TrialResult:
    under_test = LocalAdapter(adapter)
    drawn = trace("growing", "k_dim=4 dtype=f32", ops)
    session = Session(adapter, trial.observables(drawn, under_test.adapter, level))
    return trial.run(drawn, session, under_test.adapter, level)


@pytest.mark.parametrize("level", ["storage", "visible"])
def test_an_output_is_drawn_with_the_first_element_of_each_query(level: str) -> None:
    ops = "attend 1 rope=neox fill=ramp; attend 2 rope=neox fill=ramp"
    adapter = known_bugs()["ROPE-02/FromZero"].adapter()
    last = steps.failing_steps(failed(adapter, ops, level))[-1]
    assert "other" in last.differs
    expected, found = (side.get("other")["output"] for side in (last.expected, last.found))
    assert expected != found and expected.startswith("1.613, 2.5") and len(found.split(", ")) == 2


@pytest.mark.parametrize("level", ["storage", "visible"])
def test_turned_rows_are_drawn_element_by_element(level: str) -> None:
    seen = failed(rope.SecondDifferenceAlone(), "rotate 2 1; rotate 2 5 fill=ramp by=-3", level)
    last = steps.failing_steps(seen)[-1]
    expected, found = (side.get("other")["rotated"] for side in (last.expected, last.found))
    assert expected.split(", ")[1] == "-1.413 1.879 -2.829 4.058" and expected != found


def test_numbers_that_agree_are_not_drawn() -> None:
    drawn = steps.steps(failed(Reference(), "rotate 1 1; attend 1 rope=neox", "storage"))
    assert all("rotated" not in (step.found.other or {}) for step in drawn) and len(drawn) == 2
