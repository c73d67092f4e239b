"""Windows beside sinks through `from_update`: a sound engine conforms in all it claims, and faults are named."""

from __future__ import annotations

from functools import cache

import pytest

from kvspec.records.run import Record
from support.engines import sink_engines
from support.running.judging import broken, clause, record_of, verdicts
from support.slow import one_in


@cache
def judged(name: str) -> Record:
    return record_of(f"{sink_engines.__name__}:{name}", ("sink", "mask"), traces=3)


@pytest.mark.parametrize("name", ["right", "stops_early_and_says_so"])
def test_a_sound_engine_conforms_in_all_it_claims(name: str) -> None:
    seen = judged(name)
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0), seen.failures[:1]
    found = verdicts(seen)
    assert {found[f"SINK-{n}"] for n in (1, 2, 3, 4, 5, 8, 9, 12, 17)} == {"PASS"}
    assert {found[f"CACHE-{n}"] for n in (2, 3, 7, 9)} == {"PASS"}
    assert found["SINK-18"] == "NOT_CLAIMED" and "sink.positions" in clause(seen, "SINK-18").reason


def test_without_masks_rows_outside_are_not_observed_and_all_else_is() -> None:
    seen = judged("unmasked")
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0)
    found = verdicts(seen)
    assert (found["SINK-1"], found["SINK-12"], found["SINK-21"]) == ("PARTLY_OBSERVED", "PASS", "PARTLY_OBSERVED")


def test_an_engine_that_keeps_chosen_rows_conforms_in_that_too() -> None:
    seen = judged("keeping")
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0), seen.failures[:1]
    found = verdicts(seen)
    assert {found[f"SINK-{n}"] for n in (38, 41, 42)} == {"PASS"}
    assert verdicts(judged("right"))["SINK-37"] == "NOT_CLAIMED"


FAULTS = {
    "hides_sinks": ("SINK-21", "wrong row", 2),
    "drops_sinks": ("SINK-1", "wrong row", 3),
    "counts_none": ("SINK-1", "wrong row", 3),
    "counts_what_is_left": ("SINK-38", "wrong length", 2),
    "goes_back_past_a_drop": ("SINK-12", "taken though refused", 2),
    "stops_early": ("SINK-9", "refused though owed", 2),
    "says_so_and_does_not": ("SINK-12", "taken though refused", 2),
}


@pytest.mark.parametrize("name", one_in(3, FAULTS))
def test_a_fault_is_found_and_named(name: str) -> None:
    blamed, cause, longest = FAULTS[name]
    seen = judged(name)
    assert seen.exit_status == 1 and blamed in broken(seen)
    (first, *_) = [f for f in seen.failures if blamed in f.clauses and f.cause == cause]
    assert len(first.steps) <= longest, first.words


def test_a_mask_that_hides_sinks_is_no_fault_of_the_rows() -> None:
    assert broken(judged("hides_sinks")) == {"SINK-21"}
