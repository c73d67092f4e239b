"""The suite has teeth: every systematic fault in the reference's buffer and in its casts is found.

`KVCONFORM_ALL=1` also runs everything on the faults that are argued to be none.
"""

from __future__ import annotations

import os
from pathlib import Path

import mutation
import pytest
import teeth
from mutation import Mutant

import kvref.casts
import kvref.copy
from kvadapters.reference import Reference
from kvspec.contract import description

ALL = bool(os.environ.get("KVCONFORM_ALL"))
BUFFER, CASTS = (Path(str(m.__file__)).read_text() for m in (kvref.copy, kvref.casts))
ELSEWHERE = ("plan", "held")
"""What the chapter MEM speaks of."""
MUTANTS = [
    *((kvref.copy.__name__, m) for m in mutation.mutants(BUFFER) if m.function not in ELSEWHERE),
    *((kvref.casts.__name__, m) for m in mutation.mutants(CASTS)),
]
DECLARED = description(Reference().describe())

CITES = "a citation alone"
EQUIVALENT = {
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
"""Faults that are none, by function and change, each with the reason."""


def of(found: tuple[str, Mutant]) -> str:
    return teeth.of(found[1])


def argued(m: Mutant) -> bool:
    """Whether a fault is argued to be none."""
    return (m.function, m.what) in EQUIVALENT


EXAMPLES, TRACES = teeth.examples_of("copy"), teeth.traces_of("copy")


def faulty(name: str, m: Mutant) -> Reference:
    """A reference with the fault in its buffer, or in the casts that its buffer makes."""
    buffers = teeth.module(m.text)
    if name == kvref.casts.__name__:
        casts, buffers = buffers, teeth.module(BUFFER)
        buffers.narrowed, buffers.narrows = casts.narrowed, casts.narrows

    class Faulty(Reference):
        caches = {**Reference.caches, "copy": buffers.Buffer}  # noqa: RUF012

    return Faulty()


def killed_by(name: str, m: Mutant) -> str:
    return teeth.found_by(faulty(name, m), EXAMPLES, TRACES)


def test_there_are_faults_enough() -> None:
    assert len(MUTANTS) > 110
    assert {m.function for _, m in MUTANTS} >= {"copy", "_demand_rows", "_demand_place", "_write", "narrowed"}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("found", [f for f in MUTANTS if not argued(f[1])], ids=of)
def test_every_fault_in_copies_and_casts_is_found_by_a_worked_example(found: tuple[str, Mutant]) -> None:
    assert killed_by(*found).startswith("example")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.skipif(not ALL, reason="KVCONFORM_ALL=1 runs everything on faults that are none")
@pytest.mark.parametrize("found", [f for f in MUTANTS if argued(f[1])], ids=of)
def test_what_is_argued_to_be_no_fault_is_found_by_nothing(found: tuple[str, Mutant]) -> None:
    assert not killed_by(*found)


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert {(m.function, m.what) for _, m in MUTANTS if argued(m)} == set(EQUIVALENT)
