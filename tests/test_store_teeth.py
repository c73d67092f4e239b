"""The suite has teeth: every systematic fault in the reference's store is found by worked examples or covers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import mutation
import pytest
from mutation import Mutant

import kvref.store
from kvadapters.reference import Reference
from kvconform import trial, vectors
from kvconform.examples import disagreements
from kvspec.clauses import index
from kvspec.contract import description
from kvspec.examples import Example
from kvspec.session import Session
from kvspec.trace import Trace

MUTANTS = list(mutation.mutants(Path(kvref.store.__file__).read_text()))

EQUIVALENT = {
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
"""Faults that are none, by function and change, each with the reason."""


def of(m: Mutant) -> str:
    return f"{m.function}:{m.line}: {m.what}"


@cache
def examples() -> list[Example]:
    """Those of the store, and of what else its lines answer for: batches that end, bytes that are held."""
    own = [e for c in index().values() for e in c.examples if c.profile == "store"]
    others = [e for c in index().values() for e in c.examples if c.profile in ("batch", "mem")]
    return own + [e for e in others if e.trace.profile == "store"]


def traces() -> Iterator[Trace]:
    for frozen in vectors.load("store"):
        yield from frozen.traces()


def faulty(m: Mutant) -> Any:
    module: Any = ModuleType("faulty")
    exec(compile(m.text, "faulty", "exec"), vars(module))

    class Faulty(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "store": module.Store}

    return Faulty()


def killed_by(m: Mutant) -> str:
    """The source that finds the fault, at its first difference; empty if none does."""
    adapter = faulty(m)
    about = description(adapter.describe())
    observed = trial.observables(about, "storage")
    for worked in examples():
        seen = trial.run(worked.trace, Session(adapter, observed), about, "storage")
        if seen.failed or disagreements(worked, seen, about):
            return f"example {worked.id}"
    for trace in traces():
        if trial.run(trace, Session(adapter, observed), about, "storage").failed:
            return f"cover {trace}"
    return ""


def test_there_are_faults_enough() -> None:
    assert len(MUTANTS) > 90
    assert {m.function for m in MUTANTS} >= {
        "append",
        "_write",
        "set_length",
        "rollback",
        "load",
        "_loadable",
        "init",
    }


@pytest.mark.parametrize("m", [m for m in MUTANTS if (m.function, m.what) not in EQUIVALENT], ids=of)
def test_every_fault_in_the_store_is_found(m: Mutant) -> None:
    assert killed_by(m)


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert set(EQUIVALENT) <= {(m.function, m.what) for m in MUTANTS}
