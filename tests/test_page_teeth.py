"""The suite has teeth: every systematic fault in the reference's pages is found by worked examples or covers."""

from __future__ import annotations

from typing import Any, ClassVar

import teeth
from mutation import Mutant

import kvref.page
import kvref.pool
from kvadapters.reference import Reference
from kvref.page import Pages

NO_FAULTS = {
    ("_make_room", "if to.table: never"): "a citation alone",
    ("_make_room", "if to.table: always"): "a citation alone",
    ("gather", "needed < len(table): Lt swapped"): "a citation alone",
}
"""Faults that are none, by function and change, each with the reason."""

FAULTS = teeth.Faults(teeth.mutants(kvref.page), NO_FAULTS)

NO_FAULTS_IN_POOL = {
    ("_poison", "if self.config.debug: always"): "without debug nobody can look at what lies in a free page",
    (
        "__init__",
        "config.pages is not None and config.page_size is not None: and/or swapped",
    ): "what is asserted is true: no pool is opened without either",
}

POOL_FAULTS = teeth.Faults(teeth.mutants(kvref.pool), NO_FAULTS_IN_POOL)

EXAMPLES, TRACES = teeth.examples_of("page"), teeth.traces_of("page")


def having(pages: type[Any]) -> Any:
    class Faulty(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "page": pages}

    return Faulty()


def faulty(m: Mutant) -> Any:
    return having(teeth.module(m.text).Pages)


def with_pool(m: Mutant) -> Any:
    pool = teeth.module(m.text).Pool

    class Over(Pages):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.pool = pool(config)

    return having(Over)


def test_there_are_faults_enough() -> None:
    assert len(FAULTS.every) + len(POOL_FAULTS.every) > 140
    assert {m.function for m in FAULTS.every} >= {
        "append",
        "_appendable",
        "_make_room",
        "fork",
        "_cut",
        "drop",
        "gather",
    }
    assert {m.function for m in POOL_FAULTS.every} >= {
        "take",
        "share",
        "give",
        "copied",
        "runs",
        "write",
        "_poison",
    }


@FAULTS.each()
def test_every_fault_in_the_pages_is_found(m: Mutant) -> None:
    assert teeth.found_by(faulty(m), EXAMPLES, TRACES)


@POOL_FAULTS.each()
def test_every_fault_in_the_pool_is_found(m: Mutant) -> None:
    assert teeth.found_by(with_pool(m), EXAMPLES, TRACES)


@FAULTS.each_argued()
def test_what_is_argued_to_be_no_fault_is_found_by_nothing(m: Mutant) -> None:
    assert not teeth.found_by(faulty(m), EXAMPLES, TRACES), NO_FAULTS[m.function, m.what]


@POOL_FAULTS.each_argued()
def test_what_is_argued_to_be_no_fault_of_the_pool_is_found_by_nothing(m: Mutant) -> None:
    assert not teeth.found_by(with_pool(m), EXAMPLES, TRACES), NO_FAULTS_IN_POOL[m.function, m.what]


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert not FAULTS.unfounded() and not POOL_FAULTS.unfounded()
