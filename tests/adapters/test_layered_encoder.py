"""Rows of an encoder through `from_update`: engines that keep what they declare conform, and others are named."""

from __future__ import annotations

from functools import cache

import pytest

from kvspec.records.run import Record
from support.engines import encoder_engines
from support.running.judging import broken, record_of, verdicts
from support.slow import one_in

RIGHT = ("encodes", "replaces", "keeps_the_first", "joins")


@cache
def judged(name: str) -> Record:
    return record_of(f"{encoder_engines.__name__}:{name}", ("layers", "snapshot"), traces=2)


@pytest.mark.parametrize("name", one_in(2, RIGHT))
def test_an_engine_that_does_what_it_declares_conforms(name: str) -> None:
    seen = judged(name)
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0), seen.failures[:1]
    assert {verdicts(seen)[f"LAYER-{n}"] for n in (40, 41, 42, 43, 44, 45, 47)} == {"PASS"}


FAULTS = {
    "joins_and_says_it_replaces": ("LAYER-40", "wrong row"),
    "keeps_and_says_it_joins": ("LAYER-40", "wrong row"),
    "replaces_and_says_nothing": ("LAYER-43", "taken though refused"),
    "trims_the_encoder": ("LAYER-42", "wrong row"),
}


@pytest.mark.parametrize("name", one_in(2, FAULTS))
def test_a_fault_is_found_and_named(name: str) -> None:
    blamed, cause = FAULTS[name]
    seen = judged(name)
    assert seen.exit_status == 1 and blamed in broken(seen), seen.failures[:2]
    assert [f for f in seen.failures if blamed in f.clauses and f.cause == cause]
