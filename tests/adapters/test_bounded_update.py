"""Static caches through `from_update`: sound ones conform, and faults behind them are each found and named."""

from __future__ import annotations

import pytest

from kvspec.records.run import Record
from support.engines import bounded_engines
from support.running.judging import broken, record_of, verdicts
from support.slow import one_in


def judged(name: str) -> Record:
    return record_of(f"{bounded_engines.__name__}:{name}", ("bounded", "mask"), traces=10)


@pytest.mark.parametrize("name", ["right", "only_its_rows"])
def test_a_static_cache_conforms_whether_or_not_it_hands_out_its_whole_buffer(name: str) -> None:
    seen = judged(name)
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0)
    found = verdicts(seen)
    assert {found[f"BOUNDED-{n}"] for n in (1, 3, 5, 15)} == {"PASS"}
    assert {found[f"CACHE-{n}"] for n in (2, 3, 7, 9)} == {"PASS"}
    assert found["BOUNDED-2"] == "PARTLY_OBSERVED"  # without a view


def test_without_masks_it_is_not_known_whether_spare_slots_are_hidden() -> None:
    seen = judged("unmasked")
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0)
    assert verdicts(seen)["BOUNDED-15"] == "PARTLY_OBSERVED"


FAULTS = {
    "poisoned": ("BOUNDED-15", "of the buffer has no row, and numbers not finite"),
    "poisoned_unmasked": ("BOUNDED-15", "of the buffer has no row, and numbers not finite"),
    "shows_its_buffer": ("BOUNDED-15", "query 0 sees . a; expected a"),
    "hands_out_half": ("BOUNDED-15", "held, or all"),
    "counts_first": ("BOUNDED-2", "offset: expected"),
    "no_last_slot": ("BOUNDED-3", "expected ok, found error"),
}


@pytest.mark.parametrize("name", one_in(3, FAULTS))
def test_a_fault_is_found_and_named(name: str) -> None:
    blamed, words = FAULTS[name]
    seen = judged(name)
    assert seen.exit_status == 1 and blamed in broken(seen)
    assert any(words in f.message and len(f.steps) <= 3 for f in seen.failures if blamed in f.clauses)
