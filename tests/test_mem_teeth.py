"""Every systematic fault in the reference's planning is found by the suite's examples and covers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import mutation
import pytest
from local import LocalBench
from mutation import Mutant

import kvref.mem
from kvadapters.reference import Reference
from kvconform import vectors
from kvconform.examples import disagreements
from kvref.growing import Growing
from kvref.ring import Ring
from kvspec.clauses import index
from kvspec.trace import Trace

MUTANTS = list(mutation.mutants(Path(kvref.mem.__file__).read_text()))

EQUIVALENT = {
    (
        "sequence_bytes",
        "config.layers is not None and config.max_len is not None: and/or swapped",
    ): "an assertion for the reader: a store has both",
    ("ring", "0 became 1"): "a ring has a window",
    ("fit", "0 became 1"): "no sequence is a single byte long, so one byte that is left over fits none either",
}
"""Faults that are none, by function and change, each with the reason."""


def bench(m: Mutant) -> LocalBench:
    module: Any = ModuleType("faulty")
    exec(compile(m.text, "faulty", "exec"), vars(module))

    class FaultyGrowing(Growing):
        def plan(self, n: int) -> Any:
            return module.growing(self.config, self.offset, len(self.rows), n)

    class FaultyRing(Ring):
        def plan(self, n: int) -> Any:
            return module.ring(self.config, self.offset, len(self.rows), n)

    class Faulty(Reference):
        caches = {**Reference.caches, "growing": FaultyGrowing, "ring": FaultyRing}  # noqa: RUF012

        def fit(self, *question: Any) -> Any:
            return module.fit(*question)

    return LocalBench(Faulty(), examples=5)


@cache
def traces() -> tuple[Trace, ...]:
    return tuple(t for frozen in vectors.load("mem") if "store" not in frozen.name for t in frozen.traces())


def found(m: Mutant) -> Iterator[str]:
    judging = bench(m)
    for worked in (e for c in index().values() if c.profile == "mem" for e in c.examples):
        seen = judging.run(worked.trace)
        if seen.failed or disagreements(worked, seen, judging.adapter):
            yield worked.id
    yield from (f"cover {t}" for t in traces() if judging.run(t).failed)


def of(m: Mutant) -> str:
    return f"{m.function}:{m.line}: {m.what}"


def test_there_are_faults_enough() -> None:
    assert len(MUTANTS) > 60 and {m.function for m in MUTANTS} >= {"growing", "ring", "fit", "sequence_bytes"}


@pytest.mark.parametrize("m", [m for m in MUTANTS if (m.function, m.what) not in EQUIVALENT], ids=of)
def test_every_fault_in_planning_is_found(m: Mutant) -> None:
    assert next(found(m), "")


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert set(EQUIVALENT) <= {(m.function, m.what) for m in MUTANTS}
