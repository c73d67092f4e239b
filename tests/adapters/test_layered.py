"""Layers of unlike views through `from_update`: a sound engine conforms in all it claims, and faults are named."""

from __future__ import annotations

from functools import cache

import pytest

from kvspec.records.run import Record
from support.engines import layer_engines
from support.running.judging import broken, record_of, verdicts
from support.slow import one_in


@cache
def judged(name: str) -> Record:
    return record_of(f"{layer_engines.__name__}:{name}", ("layers", "snapshot"), traces=2)


def test_a_sound_engine_conforms_in_all_it_claims() -> None:
    seen = judged("right")
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0), seen.failures[:1]
    found = verdicts(seen)
    assert {found[f"LAYER-{n}"] for n in (1, 3, 4, 5, 8, 12, 15, 16, 17, 30, 31, 32)} == {"PASS"}
    assert {found[f"CACHE-{n}"] for n in (2, 7, 9)} == {"PASS"}
    assert {found[i] for i in ("LAYER-2", "LAYER-6", "LAYER-7", "LAYER-9", "CACHE-1", "CACHE-6")} == {"NOT_CLAIMED"}


def test_an_engine_that_chooses_how_far_it_goes_back_conforms() -> None:
    seen = judged("chooses")
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0), seen.clauses


def test_states_are_folded_by_the_engine_and_judged() -> None:
    seen = judged("folds")
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0), seen.failures[:1]
    assert {verdicts(seen)[f"LAYER-{n}"] for n in (15, 31, 36, 37)} == {"PASS"}


FAULTS = {
    "crops_rows_alone": ("LAYER-15", "taken though refused"),
    "cuts_one_by_one": ("LAYER-16", "changed though refused"),
    "masks_by_the_first": ("LAYER-5", "wrong row"),
    "counts_the_last": ("LAYER-3", "wrong length"),
    "says_it_goes": ("LAYER-17", "refused though owed"),
    "forgets_layers": ("LAYER-5", "wrong row"),
}


@pytest.mark.parametrize("name", one_in(2, FAULTS))
def test_a_fault_is_found_and_named(name: str) -> None:
    blamed, cause = FAULTS[name]
    seen = judged(name)
    assert seen.exit_status == 1 and blamed in broken(seen), seen.failures[:2]
    assert [f for f in seen.failures if blamed in f.clauses and f.cause == cause]
