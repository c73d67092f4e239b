"""The suite has teeth: every systematic fault in the reference's batch is found by worked examples or covers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import mutation
import pytest
import teeth
from mutation import Mutant

import kvref.batch
from kvadapters.reference import Reference
from kvref.store import Store

MUTANTS = list(mutation.mutants(Path(kvref.batch.__file__).read_text()))

EQUIVALENT = {
    ("scatter", "if not n: never"): "a citation alone",
    ("scatter", "if not n: always"): "a citation alone",
    ("_end_batch", "if self.batch_ is not None: never"): "a citation alone",
    ("_end_batch", "if self.batch_ is not None: always"): "a citation alone",
    (
        "__init__",
        "config.layers is not None and config.max_len is not None: and/or swapped",
    ): "what is asserted is true: no store is opened without either",
}
"""Faults that are none, by function and change, each with the reason."""


EXAMPLES, TRACES = teeth.examples_of("batch"), teeth.traces_of("batch")


def faulty(m: Mutant) -> Any:
    module = teeth.module(m.text)
    store = type("Faulty", (module.Batching, Store), {})

    class Faulty(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "store": store}

    return Faulty()


def test_there_are_faults_enough() -> None:
    assert len(MUTANTS) > 90
    assert {m.function for m in MUTANTS} >= {"scatter", "step", "batch", "lower", "write", "replay", "_steppable"}


@pytest.mark.parametrize("m", [m for m in MUTANTS if (m.function, m.what) not in EQUIVALENT], ids=teeth.of)
def test_every_fault_in_the_batch_is_found(m: Mutant) -> None:
    assert teeth.found_by(faulty(m), EXAMPLES, TRACES)


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert set(EQUIVALENT) <= {(m.function, m.what) for m in MUTANTS}
