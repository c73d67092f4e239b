"""Every systematic fault in the reference's rounds is found by worked examples and frozen covers of the chapter."""

from __future__ import annotations

from typing import Any, ClassVar

import teeth
from mutation import Mutant

import kvref.draft
from kvadapters.reference import Reference
from kvref.growing import Growing
from kvref.ring import Ring

NO_FAULTS: dict[teeth.Named, str] = {
    ("__init__", "len(given) < len(caches): Lt swapped"): "it decides on a citation alone",
    ("commit", "{n} != set(kept): NotEq swapped"): "it decides on a citation alone",
    ("commit", "True became False"): "there are as many numbers as layers, one was made of each",
    (
        "draft",
        "lost: self._demand_open('draft')",
    ): "the mask asked for next refuses under the same clause, and nothing looks at the rows of such a round",
}
"""Faults that are none, each with the reason."""

FAULTS = teeth.Faults(teeth.mutants(kvref.draft), NO_FAULTS)

JUDGED = ("growing", "ring", "mask", "snapshot", "store", "draft")
"""What is judged: not what it costs."""


EXAMPLES, TRACES = teeth.examples_of("draft"), teeth.traces_of("draft")


def bare(kind: type[Any]) -> type[Any]:
    """The kind of cache without its guard, for a faulty one to be put on."""
    plain = {name: getattr(found, "__wrapped__", found) for name, found in vars(kind).items()}
    return type(
        kind.__name__, kind.__bases__, {n: f for n, f in plain.items() if n not in ("__dict__", "__weakref__")}
    )


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
    assert len(FAULTS.every) > 80
    assert {m.function for m in FAULTS.every} >= {"draft", "keep", "commit", "mask", "guarded", "demand"}


@FAULTS.each()
def test_every_fault_in_a_round_is_found(m: Mutant) -> None:
    assert killed_by(m)


@FAULTS.each_argued()
def test_what_is_argued_to_be_no_fault_is_found_by_nothing(m: Mutant) -> None:
    assert not killed_by(m), FAULTS.reason(m)


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert not FAULTS.unfounded()


def test_the_reference_without_a_fault_is_found_by_nothing() -> None:
    sound = Mutant(0, "", "", frozenset(), teeth.text(kvref.draft))
    assert not killed_by(sound)
