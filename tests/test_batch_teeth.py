"""The suite has teeth: every systematic fault in the reference's batch is found by worked examples or covers."""

from __future__ import annotations

from typing import Any, ClassVar

import teeth
from mutation import Mutant

import kvref.batch
from kvadapters.reference import Reference
from kvref.store import Store

NO_FAULTS: dict[teeth.Named, str] = {
    ("scatter", "if not n: never"): "a citation alone",
    ("scatter", "if not n: always"): "a citation alone",
    ("_end_batch", "if self.batch_ is not None: never"): "a citation alone",
    ("_end_batch", "if self.batch_ is not None: always"): "a citation alone",
    (
        "__init__",
        "config.layers is not None and config.max_len is not None: and/or swapped",
    ): "what is asserted is true: no store is opened without either",
}
"""Faults that are none, each with the reason."""

FAULTS = teeth.Faults(teeth.mutants(kvref.batch), NO_FAULTS)


EXAMPLES, TRACES = teeth.examples_of("batch"), teeth.traces_of("batch")


def faulty(m: Mutant) -> Any:
    module = teeth.module(m.text)
    store = type("Faulty", (module.Batching, Store), {})

    class Faulty(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "store": store}

    return Faulty()


def test_there_are_faults_enough() -> None:
    assert len(FAULTS.every) > 90
    assert {m.function for m in FAULTS.every} >= {
        "scatter",
        "step",
        "batch",
        "lower",
        "write",
        "replay",
        "_steppable",
    }


@FAULTS.each()
def test_every_fault_in_the_batch_is_found(m: Mutant) -> None:
    assert teeth.found_by(faulty(m), EXAMPLES, TRACES)


@FAULTS.each_argued()
def test_what_is_argued_to_be_no_fault_is_found_by_nothing(m: Mutant) -> None:
    assert not teeth.found_by(faulty(m), EXAMPLES, TRACES), FAULTS.reason(m)


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert not FAULTS.unfounded()
