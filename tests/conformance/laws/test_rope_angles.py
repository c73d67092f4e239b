"""Angles in f32: right where they are declared, wrong where not; and no worse than f32 makes them."""

from __future__ import annotations

import pytest

from kvspec.records.run import Record
from support import rope_engines
from support.judging import broken, record_of


def judged(name: str) -> Record:
    return record_of(f"{rope_engines.__name__}:{name}", ("rope",), traces=5)


@pytest.mark.parametrize("name", ["Turning", "Exponential", "RunningProduct"])
def test_angles_in_f32_conform_where_they_are_declared(name: str) -> None:
    seen = judged(name)
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0), seen.failures[:1]


@pytest.mark.parametrize("name", ["Undeclared", "Of16Bits", "HalfAsExact"])
def test_angles_that_are_worse_than_declared_are_a_breach(name: str) -> None:
    assert "ROPE-5" in broken(judged(name))
