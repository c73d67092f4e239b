"""Angles in f32: right where they are declared, wrong where not; and no worse than f32 makes them."""

from __future__ import annotations

from typing import Any

import pytest

from kvconform.oracle.expected import Expected
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.geometry import Array
from kvspec.notation import from_sentence
from kvspec.records.run import Record
from support.engines import rope_engines
from support.running.judging import Wired, broken, record_of
from support.slow import one_in


def judged(name: str) -> Record:
    return record_of(f"{rope_engines.__name__}:{name}", ("rope",), traces=5)


@pytest.mark.parametrize("name", one_in(3, ["Turning", "Exponential", "RunningProduct"]))
def test_angles_in_f32_conform_where_they_are_declared(name: str) -> None:
    seen = judged(name)
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0), seen.failures[:1]


@pytest.mark.parametrize("name", one_in(3, ["HalfAsExact", "Undeclared", "Of16Bits"]))
def test_angles_that_are_worse_than_declared_are_a_breach(name: str) -> None:
    assert "ROPE-5" in broken(judged(name))


def test_an_entry_that_is_proposed_names_the_clause_to_look_at_first() -> None:
    only = ("ROPE-1", "ROPE-2", "ROPE-8", "ROPE-34")
    seen = record_of(f"{rope_engines.__name__}:ReadsNoBounds", ("rope",), only=only)
    assert {str(f.entry).splitlines()[2] for f in seen.failures} == {'clause = "ROPE-34"'}, seen.failures


@pytest.mark.parametrize(("name", "breaks"), [("TakesAnything", set()), ("TakesAnythingUnsaid", {"ROPE-38"})])
def test_an_engine_that_looks_at_no_numbers_of_a_scaling_says_so(name: str, breaks: set[str]) -> None:
    seen = record_of(f"{rope_engines.__name__}:{name}", ("rope",), only=("ROPE-31", "ROPE-38"))
    assert broken(seen) == breaks, seen.failures


def allowed(name: str) -> Array:
    worker: Any = Wired(f"{rope_engines.__name__}:{name}")
    trace = from_sentence("growing dtype=f32: append 9 fill=random; attend 1 rope=neox fill=random")
    ((want, _), *_) = reversed(AdapterUnderTest(worker, worker.describe()).run(trace).steps)
    assert isinstance(want, Expected) and want.outputs is not None
    return want.outputs.bound


def test_an_attend_is_held_to_the_angles_that_are_declared() -> None:
    assert (allowed("Turning") > allowed("Undeclared")).all()
