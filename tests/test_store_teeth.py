"""The suite has teeth: every systematic fault in the reference's store is found by worked examples or covers."""

from __future__ import annotations

from typing import Any, ClassVar

import teeth
from mutation import Mutant

import kvref.store
from kvadapters.reference import Reference

NO_FAULTS: dict[teeth.Named, str] = {
    (
        "_allocate",
        "config.layers is not None and config.max_len is not None: and/or swapped",
    ): "what is asserted is true: no store is opened without either",
    ("append", "1 became 2"): "-2 is no number of rows either, and refused by the shape",
    ("_clear", "lost: self.zeroed_by = zeroed_by"): "which clause is cited for rows of zeros",
    ("set_length", "n > self.lengths_[layer]: Gt swapped"): "which clause is cited for rows of zeros",
    (
        "fingerprint",
        "position < self.lengths_[0]: Lt swapped",
    ): "which clauses are cited for rows that are not live",
    ("plan", "if n > 0: always"): "there is always room for no rows",
    ("plan", "n > 0: Gt swapped"): "there is always room for no rows",
    ("held", "batch == 0: Eq swapped"): "which clause is cited",
    ("held", "0 became 1"): "which clause is cited",
}
"""Faults that are none, each with the reason."""

FAULTS = teeth.Faults(teeth.mutants(kvref.store), NO_FAULTS)


OTHERS = [e for e in teeth.examples_of("batch", "mem") if e.trace.profile == "store"]
"""What else its lines answer for: batches that end, bytes that are held."""

EXAMPLES, TRACES = teeth.examples_of("store") + OTHERS, teeth.traces_of("store")


def faulty(m: Mutant) -> Any:
    module = teeth.module(m.text)

    class Faulty(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "store": module.Store}

    return Faulty()


def test_there_are_faults_enough() -> None:
    assert len(FAULTS.every) > 90
    assert {m.function for m in FAULTS.every} >= {
        "append",
        "_write",
        "set_length",
        "rollback",
        "load",
        "_loadable",
        "init",
    }


@FAULTS.each()
def test_every_fault_in_the_store_is_found(m: Mutant) -> None:
    assert teeth.found_by(faulty(m), EXAMPLES, TRACES)


@FAULTS.each_argued()
def test_what_is_argued_to_be_no_fault_is_found_by_nothing(m: Mutant) -> None:
    assert not teeth.found_by(faulty(m), EXAMPLES, TRACES), FAULTS.reason(m)


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert not FAULTS.unfounded()
