"""A ring that hands out all its slots: what a refused append left where no query sees it is no breach."""

from __future__ import annotations

from kvspec.records.run import Record
from support.engines import slot_engines
from support.running.judging import broken, record_of


def judged(name: str) -> Record:
    return record_of(f"{slot_engines.__name__}:{name}", ("ring", "mask"), traces=3)


def test_slots_that_no_query_sees_may_hold_anything() -> None:
    seen = judged("slots")
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0)


def test_a_slot_that_a_query_sees_is_judged() -> None:
    assert "RING-1" in broken(judged("shows_unwritten"))
