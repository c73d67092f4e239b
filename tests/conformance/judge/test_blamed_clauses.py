"""A fault is shown on a short trace, under a clause that speaks of it: systematic faults in the ring."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from kvconform.checks import covers, examples
from kvconform.generate import frozen_covers
from kvconform.mutants.mutant import Mutant
from kvconform.mutants.systematic import modules
from kvspec.reading.clauses import index
from support.local_adapter import LocalAdapter

ELSEWHERE = ("aside", "in_order", "held_after", "plan", "held")
"""What other chapters ask of a ring, and show."""


def function(m: Mutant) -> str:
    """The function that holds a fault."""
    return m.place[0].removeprefix("reference/ring.")


@cache
def sample() -> tuple[Mutant, ...]:
    """A dozen faults or so, over the whole file."""
    every = (m for m in modules.of("reference/ring") if not m.equivalent)
    return tuple(m for m in every if function(m) not in ELSEWHERE)[7::17]


@pytest.mark.parametrize("m", sample(), ids=lambda m: m.id)
def test_a_fault_is_shown_on_a_short_trace_under_a_clause_that_speaks_of_it(m: Mutant) -> None:
    judging = LocalAdapter(m.adapter(), traces=5)
    with judging.judging("clauses") as tally:
        for clause in index().values():
            for worked in clause.examples:
                if worked.trace.kind == "ring":
                    examples.judge(judging, worked)
        for frozen in (c for c in frozen_covers.load("ring") if c.start.config.window in (2, 3)):
            covers.judge(judging, replace(frozen, lines=frozen.lines[::4]))
    shortest = min(tally.failures, key=lambda f: len(f.trace["ops"]))
    assert len(shortest.trace["ops"]) <= 5, shortest.words
    failed = {c for f in tally.failures for c in f.clauses} | set(tally.own)
    chapters = {c.partition("-")[0] for c in m.clauses} or {"RING"}
    assert failed & set(m.clauses) or chapters & {c.partition("-")[0] for c in failed}, (failed, m.clauses)
