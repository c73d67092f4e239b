"""Drafts of layers through `from_update`, one way on: a sound engine conforms, and faults are named."""

from __future__ import annotations

from functools import cache

import pytest

from kvspec.records.run import Record
from support.engines import drafting_engines
from support.running.judging import broken, record_of, verdicts
from support.slow import one_in


@cache
def judged(name: str) -> Record:
    return record_of(f"{drafting_engines.__name__}:{name}", ("layers", "snapshot"), traces=2)


def test_a_sound_engine_conforms_in_all_it_claims() -> None:
    seen = judged("drafts")
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0), seen.failures[:1]
    assert {verdicts(seen)[f"LAYER-{n}"] for n in (48, 49, 50, 51, 52, 53, 54)} == {"PASS"}


FAULTS = {
    "never_records": ("LAYER-49", "wrong row"),
    "keeps_all": ("LAYER-50", "wrong length"),
    "crops_the_first": ("LAYER-5", "wrong row"),
}


@pytest.mark.parametrize("name", one_in(2, FAULTS))
def test_a_fault_is_found_and_named(name: str) -> None:
    blamed, cause = FAULTS[name]
    seen = judged(name)
    assert seen.exit_status == 1 and blamed in broken(seen), seen.failures[:2]
    assert [f for f in seen.failures if blamed in f.clauses and f.cause == cause]
