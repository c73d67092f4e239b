"""The suite has teeth: every systematic fault in the reference's buffer and in its casts is found.

`KVCONFORM_ALL=1` also runs everything on the faults that are argued to be none.
"""

from __future__ import annotations

import pytest
import teeth
from mutation import Mutant

import kvref.casts
import kvref.copy
from kvadapters.reference import Reference

BUFFER, CASTS = teeth.mutants(kvref.copy), teeth.mutants(kvref.casts)
ELSEWHERE = ("plan", "held")
"""What the chapter MEM speaks of."""

CITES = "a citation alone"
NO_FAULTS: dict[teeth.Named, str] = {
    ("copy", "if len(keys) > n: never"): CITES,
    ("copy", "if len(keys) > n: always"): CITES,
    ("copy", "len(keys) > n: Gt swapped"): CITES,
    ("copy", "if n > self.capacity: never"): CITES,
    ("copy", "if n > self.capacity: always"): CITES,
    ("copy", "n > self.capacity: Gt swapped"): CITES,
    ("_cast", "if array.dtype == DTYPES[self.config.dtype]: always"): "numpy rounds alike where it is written",
    ("_cite", "if beyond.any(): never"): CITES,
    ("_cite", "if beyond.any(): always"): CITES,
    ("_cite", "if np.isnan(x).any(): never"): CITES,
    ("_cite", "if np.isnan(x).any(): always"): CITES,
    ("_cite", "if small.any(): never"): CITES,
    ("_cite", "if small.any(): always"): CITES,
    ("narrowed", "np.abs(x) < 2.0 ** (to.least - 1): Lt swapped"): CITES,
    ("narrowed", "to.least - 1: operator swapped"): CITES,
    ("narrowed", "1 became 2"): CITES,
}
"""Faults that are none, each with the reason."""

FAULTS = teeth.Faults([*(m for m in BUFFER if m.function not in ELSEWHERE), *CASTS], NO_FAULTS)


EXAMPLES, TRACES = teeth.examples_of("copy"), teeth.traces_of("copy")


def faulty(m: Mutant) -> Reference:
    """A reference with the fault in its buffer, or in the casts that its buffer makes."""
    buffers = teeth.module(m.text)
    if m in CASTS:
        casts, buffers = buffers, teeth.module(teeth.text(kvref.copy))
        buffers.narrowed, buffers.narrows = casts.narrowed, casts.narrows

    class Faulty(Reference):
        caches = {**Reference.caches, "copy": buffers.Buffer}  # noqa: RUF012

    return Faulty()


def killed_by(m: Mutant) -> str:
    return teeth.found_by(faulty(m), EXAMPLES, TRACES)


def test_there_are_faults_enough() -> None:
    assert len(FAULTS.every) > 110
    assert {m.function for m in FAULTS.every} >= {"copy", "_demand_rows", "_demand_place", "_write", "narrowed"}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@FAULTS.each()
def test_every_fault_in_copies_and_casts_is_found_by_a_worked_example(m: Mutant) -> None:
    assert killed_by(m).startswith("example")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@FAULTS.each_argued()
def test_what_is_argued_to_be_no_fault_is_found_by_nothing(m: Mutant) -> None:
    assert not killed_by(m), FAULTS.reason(m)


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert not FAULTS.unfounded()
