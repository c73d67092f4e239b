"""The suite has teeth: every systematic fault in the reference's RoPE and its tables is found by a worked example.

`KVCONFORM_ALL=1` also runs everything on the faults that are argued to be none.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import teeth
from mutation import Mutant

import kvref.angles
import kvref.attention
import kvref.rope
from kvadapters.reference import Reference
from kvref.growing import Growing

ROPE, ANGLES = teeth.mutants(kvref.rope), teeth.mutants(kvref.angles)

ELSEWHERE = ("_cite", "nearest", "_inside")
"""What is a citation, or a count, alone; and what matters to one number in 2^29: see tests/test_rope_exact.py."""

NO_FAULTS: dict[teeth.Named, str] = {
    ("demand", "dims < 1: Lt swapped"): "1 is odd",
    ("demand", "1 became 2", 2): "1 is odd",
    ("cosine_and_sine", "int(turns % 4) % 4: operator swapped"): "four quarters more are a whole turn more",
    ("cosine_and_sine", "turns % 4: operator swapped"): "four quarters more are a whole turn more",
}
"""Faults that are none, by function and change, each with the reason."""

FAULTS = teeth.Faults([m for m in (*ROPE, *ANGLES) if m.function not in ELSEWHERE], NO_FAULTS)

EXAMPLES, TRACES = teeth.examples_of("rope"), teeth.traces_of("rope")


def faulty(m: Mutant) -> Any:
    """A reference with the fault in what turns rows, by themselves and in a growing cache."""
    return turning(m.text if m in ROPE else teeth.text(kvref.rope), m.text if m in ANGLES else "")


def turning(text: str, angles: str = "") -> Any:
    """A reference that turns rows as these texts say."""
    rope, attention = teeth.module(text), teeth.module(teeth.text(kvref.attention))
    rope.angles = teeth.module(angles) if angles else rope.angles
    attention.rope = rope
    growing = type("Growing", (Growing,), {"attend": attention.Attending.attend})

    class Faulty(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "growing": growing}

        def rotate(self, rows: Any, positions: Any, how: Any) -> Any:
            return rope.rotate(rows, positions, how)

    return Faulty()


def test_there_are_faults_enough() -> None:
    assert len(FAULTS.every) > 60
    assert {m.function for m in FAULTS.every} >= {"rotate", "demand", "pairs", "_turned", "at_positions", "_series"}


def test_without_a_fault_nothing_is_found() -> None:
    assert not teeth.found_by(turning(teeth.text(kvref.rope), teeth.text(kvref.angles)), EXAMPLES, TRACES[:50])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@FAULTS.each()
def test_every_fault_in_turning_is_found_by_a_worked_example(m: Mutant) -> None:
    assert teeth.found_by(faulty(m), EXAMPLES, TRACES).startswith("example")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@FAULTS.each_argued()
def test_what_is_argued_to_be_no_fault_is_found_by_nothing(m: Mutant) -> None:
    assert not teeth.found_by(faulty(m), EXAMPLES, TRACES), FAULTS.reason(m)


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert not FAULTS.unfounded()
