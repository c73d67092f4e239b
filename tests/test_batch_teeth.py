"""The suite has teeth: every systematic fault in the reference's batch is found by worked examples or covers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import mutation
import pytest
from mutation import Mutant

import kvref.batch
from kvadapters.reference import Reference
from kvconform import trial, vectors
from kvconform.examples import disagreements
from kvref.store import Store
from kvspec.clauses import index
from kvspec.contract import description
from kvspec.examples import Example
from kvspec.session import Session
from kvspec.trace import Trace

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


def of(m: Mutant) -> str:
    return f"{m.function}:{m.line}: {m.what}"


@cache
def examples() -> list[Example]:
    return [e for c in index().values() for e in c.examples if c.profile == "batch"]


def traces() -> Iterator[Trace]:
    for frozen in vectors.load("batch"):
        yield from frozen.traces()


def faulty(m: Mutant) -> Any:
    module: Any = ModuleType("faulty")
    exec(compile(m.text, "faulty", "exec"), vars(module))
    store = type("Faulty", (module.Batching, Store), {})

    class Faulty(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "store": store}

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
    assert {m.function for m in MUTANTS} >= {"scatter", "step", "batch", "lower", "write", "replay", "_steppable"}


@pytest.mark.parametrize("m", [m for m in MUTANTS if (m.function, m.what) not in EQUIVALENT], ids=of)
def test_every_fault_in_the_batch_is_found(m: Mutant) -> None:
    assert killed_by(m)


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert set(EQUIVALENT) <= {(m.function, m.what) for m in MUTANTS}
