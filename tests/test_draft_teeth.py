"""Every systematic fault in the reference's rounds is found by worked examples and frozen covers of the chapter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import mutation
import pytest
import teeth
from mutation import Mutant

import kvref.draft
from kvadapters.reference import Reference
from kvref.growing import Growing
from kvref.ring import Ring

ALL = bool(os.environ.get("KVCONFORM_ALL"))
MUTANTS = list(mutation.mutants(Path(kvref.draft.__file__).read_text()))

EQUIVALENT = {
    ("__init__", "len(given) < len(caches): Lt swapped"): "it decides on a citation alone",
    ("commit", "{n} != set(kept): NotEq swapped"): "it decides on a citation alone",
    ("commit", "True became False"): "there are as many numbers as layers, one was made of each",
    (
        "draft",
        "lost: self._demand_open('draft')",
    ): "the mask asked for next refuses under the same clause, and nothing looks at the rows of such a round",
}
"""Faults that are none, by function and change, each with the reason."""


JUDGED = ("growing", "ring", "mask", "snapshot", "store", "draft")
"""What is judged: not what it costs."""


def argued(m: Mutant) -> bool:
    """Whether a fault is argued to be none."""
    return (m.function, m.what) in EQUIVALENT


EXAMPLES, TRACES = teeth.examples_of("draft"), teeth.traces_of("draft")


def bare(kind: type[Any]) -> type[Any]:
    """The kind of cache without its guard, for a faulty one to be put on."""
    plain = {name: getattr(found, "__wrapped__", found) for name, found in vars(kind).items()}
    return type(kind.__name__, (), {n: f for n, f in plain.items() if n not in ("__dict__", "__weakref__")})


def faulty(m: Mutant) -> Reference:
    module = teeth.module(m.text)

    class Faulty(Reference):
        caches: ClassVar[dict[str, Any]] = {
            **Reference.caches,
            "growing": module.speculative(bare(Growing)),
            "ring": module.speculative(bare(Ring)),
        }

        def describe(self) -> dict[str, Any]:
            said = super().describe()
            return {**said, "profiles": {p: said["profiles"][p] for p in JUDGED}}

        def speculate(self, caches: Any, isolated: bool) -> Any:
            return module.Round(caches, isolated)

    return Faulty()


def killed_by(m: Mutant) -> str:
    return teeth.found_by(faulty(m), EXAMPLES, TRACES)


def test_there_are_faults_enough() -> None:
    assert len(MUTANTS) > 80
    assert {m.function for m in MUTANTS} >= {"draft", "keep", "commit", "mask", "guarded", "demand"}


@pytest.mark.parametrize("m", [m for m in MUTANTS if not argued(m)], ids=teeth.of)
def test_every_fault_in_a_round_is_found(m: Mutant) -> None:
    assert killed_by(m)


@pytest.mark.skipif(not ALL, reason="KVCONFORM_ALL=1 runs everything on faults that are none")
@pytest.mark.parametrize("m", [m for m in MUTANTS if argued(m)], ids=teeth.of)
def test_what_is_argued_to_be_no_fault_is_found_by_nothing(m: Mutant) -> None:
    assert not killed_by(m), EQUIVALENT[m.function, m.what]


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert {(m.function, m.what) for m in MUTANTS if argued(m)} == set(EQUIVALENT)


def test_the_reference_without_a_fault_is_found_by_nothing() -> None:
    sound = Mutant(0, "", "", frozenset(), Path(kvref.draft.__file__).read_text())
    assert not killed_by(sound)
