"""The suite has teeth: every systematic fault in the ring is found, on short traces, under the right clauses.

`KVCONFORM_ALL=1` also runs everything on the faults that are argued to be none.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import teeth
from local import LocalBench
from mutation import Mutant

import kvref.ring
from kvadapters.reference import Reference
from kvconform import vectors
from kvconform.suite import common
from kvref.growing import Growing
from kvspec.clauses import index

ALIKE = "a citation alone; the other line alike loses a turn, or makes one too many, and is found"
NO_FAULTS: dict[teeth.Named, str] = {
    (
        "_straighten",
        "self.offset <= self.window: LtE swapped",
    ): "at offset = W the index is W too: neither branch moves",
    ("_straighten", "if self.index < len(self.rows): never", 0): ALIKE,
    ("_straighten", "if self.index < len(self.rows): always", 0): ALIKE,
    ("_straighten", "self.index < len(self.rows): Lt swapped", 0): ALIKE,
    (
        "can_rewind",
        "0 <= to < self.offset <= self.window: Lt swapped",
    ): "to = offset is allowed by the line's first half",
}
"""Faults that are none, each with the reason."""

FAULTS = teeth.Faults(teeth.mutants(kvref.ring), NO_FAULTS)

EXAMPLES = [e for c in index().values() for e in c.examples if e.trace.profile == "ring"]
TRACES = [t for t in teeth.traces_of("mask", "ring", "snapshot") if t.profile == "ring"]


def faulty(m: Mutant) -> Reference:
    class Faulty(Reference):
        caches = {"growing": Growing, "ring": teeth.module(m.text).Ring}  # noqa: RUF012

    return Faulty()


def killed_by(m: Mutant) -> str:
    return teeth.found_by(faulty(m), EXAMPLES, TRACES)


def test_there_are_faults_enough() -> None:
    assert len(FAULTS.every) > 180
    assert {m.function for m in FAULTS.every} >= {"_decode", "_prefill", "_straighten", "rewind", "restore", "mask"}


@FAULTS.each()
def test_every_fault_in_the_ring_is_found(m: Mutant) -> None:
    assert killed_by(m)


@FAULTS.each_argued()
def test_what_is_argued_to_be_no_fault_is_found_by_nothing(m: Mutant) -> None:
    assert not killed_by(m), FAULTS.reason(m)


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert not FAULTS.unfounded()


ELSEWHERE = ("aside", "in_order", "held_after")
"""What other chapters ask of a ring, and show."""

SAMPLE = [m for m in FAULTS.found if m.function not in ELSEWHERE][7::19]
"""Ten faults or so, over the whole file."""


@pytest.mark.parametrize("m", SAMPLE, ids=teeth.of)
def test_a_fault_is_shown_on_a_short_trace_under_a_clause_that_speaks_of_it(m: Mutant) -> None:
    judging = LocalBench(faulty(m), examples=5)
    with judging.judging("teeth") as tally:
        for worked in EXAMPLES:
            common.example(judging, worked)
        for frozen in (c for c in vectors.load("ring") if c.start.config.window in (2, 3)):
            common.cover(judging, replace(frozen, lines=frozen.lines[::4]))
    shortest = min(tally.failures, key=lambda f: len(f["trace"]["ops"]))
    assert len(shortest["trace"]["ops"]) <= 5, shortest["words"]
    failed = {c for f in tally.failures for c in f["clauses"]} | set(tally.own)
    chapters = {c.partition("-")[0] for c in m.clauses} or {"RING"}
    assert failed & m.clauses or chapters & {c.partition("-")[0] for c in failed}, (failed, m.clauses)
