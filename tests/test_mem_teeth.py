"""Every systematic fault in the reference's planning is found by the suite's examples and covers."""

from __future__ import annotations

from typing import Any

import teeth
from mutation import Mutant

import kvref.mem
from kvadapters.reference import Reference
from kvref.growing import Growing
from kvref.ring import Ring

NO_FAULTS: dict[teeth.Named, str] = {
    (
        "sequence_bytes",
        "config.layers is not None and config.max_len is not None: and/or swapped",
    ): "an assertion for the reader: a store has both",
    ("ring", "0 became 1", 0): "a ring has a window",
    ("fit", "0 became 1", 1): "no sequence is a single byte long, so one byte that is left over fits none either",
}
"""Faults that are none, each with the reason."""

FAULTS = teeth.Faults(teeth.mutants(kvref.mem), NO_FAULTS)


def faulty(m: Mutant) -> Reference:
    module = teeth.module(m.text)

    class FaultyGrowing(Growing):
        def plan(self, n: int) -> Any:
            return module.growing(self.config, self.offset, len(self.rows), n)

    class FaultyRing(Ring):
        def plan(self, n: int) -> Any:
            return module.ring(self.config, self.offset, len(self.rows), n)

    class Faulty(Reference):
        caches = {**Reference.caches, "growing": FaultyGrowing, "ring": FaultyRing}  # noqa: RUF012

        def fit(self, *question: Any) -> Any:
            return module.fit(*question)

    return Faulty()


EXAMPLES = teeth.examples_of("mem")
TRACES = [t for t in teeth.traces_of("mem") if t.profile != "store"]


def test_there_are_faults_enough() -> None:
    assert len(FAULTS.every) > 60 and {m.function for m in FAULTS.every} >= {
        "growing",
        "ring",
        "fit",
        "sequence_bytes",
    }


@FAULTS.each()
def test_every_fault_in_planning_is_found(m: Mutant) -> None:
    assert teeth.found_by(faulty(m), EXAMPLES, TRACES)


@FAULTS.each_argued()
def test_what_is_argued_to_be_no_fault_is_found_by_nothing(m: Mutant) -> None:
    assert not teeth.found_by(faulty(m), EXAMPLES, TRACES), FAULTS.reason(m)


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert not FAULTS.unfounded()
