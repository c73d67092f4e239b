"""The suite has teeth: every systematic fault in the reference's buffer and in its casts is found.

`KVCONFORM_ALL=1` also runs everything on the faults that are argued to be none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import mutation
import pytest
from mutation import Mutant

import kvref.casts
import kvref.copy
from kvadapters.reference import Reference
from kvconform import trial, vectors
from kvconform.examples import disagreements
from kvspec.clauses import index
from kvspec.contract import description
from kvspec.examples import Example
from kvspec.session import Session
from kvspec.trace import Trace

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
    m = found[1]
    return f"{m.function}:{m.line}: {m.what}"


def argued(m: Mutant) -> bool:
    """Whether a fault is argued to be none."""
    return (m.function, m.what) in EQUIVALENT


@cache
def examples() -> list[Example]:
    return [e for c in index().values() if c.profile == "copy" for e in c.examples]


def traces() -> Iterator[Trace]:
    for frozen in vectors.load("copy"):
        yield from frozen.traces()


def module(text: str, **changed: Any) -> Any:
    made: Any = ModuleType("faulty")
    exec(compile(text, "faulty", "exec"), vars(made))
    vars(made).update(changed)
    return made


def faulty(name: str, m: Mutant) -> Reference:
    """A reference with the fault in its buffer, or in the casts that its buffer makes."""
    buffers = module(m.text)
    if name == kvref.casts.__name__:
        buffers = module(BUFFER, narrowed=buffers.narrowed, narrows=buffers.narrows)

    class Faulty(Reference):
        caches = {**Reference.caches, "copy": buffers.Buffer}  # noqa: RUF012

    return Faulty()


def killed_by(name: str, m: Mutant) -> str:
    """The source that finds the fault, at its first difference; empty if none does."""
    adapter = faulty(name, m)
    for worked in examples():
        seen = trial.run(worked.trace, Session(adapter), DECLARED, "storage")
        if seen.failed or disagreements(worked, seen, DECLARED):
            return f"example {worked.id}"
    found = (t for t in traces() if trial.run(t, Session(adapter), DECLARED, "storage").failed)
    return next((f"cover {t}" for t in found), "")


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
