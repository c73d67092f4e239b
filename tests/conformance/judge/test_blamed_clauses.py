"""A fault is shown on a short trace, under a clause that speaks of it: systematic faults in the ring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.bugs.known_bugs import known_bugs
from kvconform.bugs.mutant import Mutant
from kvconform.checks import covers, examples
from kvconform.generate import frozen_covers
from kvref.abilities.snapshot import Snapshot
from kvref.caches.growing import Growing
from kvspec.chapters import LETTERS
from kvspec.contract import Cache, Pair, Readable
from kvspec.geometry import Config
from kvspec.notation import from_sentence
from kvspec.reading.clauses import index
from kvworkshop.systematic import modules
from support.running.local_adapter import LocalAdapter
from support.slow import one_in

ELSEWHERE = ("aside", "in_order", "held_after", "plan", "held", "needed", "take_over")
"""What other chapters ask of a ring, and show."""


ONLY_COSTS = ("reference/ring._straighten: self.index < len(self.rows): Lt swapped",)
"""Faults that show in nothing but what an append costs: rows in order are copied once more."""


def function(m: Mutant) -> str:
    """The function that holds a fault."""
    return m.place[0].removeprefix("reference/ring.")


@cache
def sample() -> tuple[Mutant, ...]:
    """A dozen faults or so, over the whole file."""
    every = (m for m in modules.of("reference/ring") if not m.equivalent)
    return tuple(m for m in every if function(m) not in ELSEWHERE)[7::17]


@pytest.mark.parametrize("m", one_in(3, sample()), ids=lambda m: m.id)
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
    chapters = {c.partition("-")[0] for c in m.clauses} - {LETTERS} or {"RING", LETTERS}
    chapters |= {"RESIDENCY"} if m.id in ONLY_COSTS else set()
    assert failed & set(m.clauses) or chapters & {c.partition("-")[0] for c in failed}, (failed, m.clauses)


class OnGrowing(Reference):
    """The reference, with another growing cache."""

    cache: type[Growing]

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "chapters": {"growing": "storage", "snapshot": "storage"}}

    def open(self, kind: str, config: Config) -> Cache:
        return self.cache(config) if kind == "growing" else super().open(kind, config)


class RestoresTheNewest(OnGrowing):
    """After a restore to before the snapshot's start, the rows are the snapshot's newest ones."""

    class cache(Growing):
        def restore(self, saved: Snapshot | None, to: int) -> None:
            super().restore(saved, to)
            if saved is not None and 0 < to < saved.start:
                self.rows.write(0, Pair(*(a[:, :, -1:] for a in saved.rows)))


class ViewsInReverse(OnGrowing):
    """Its views have the rows in reverse."""

    class cache(Growing):
        def read(self, what: Readable) -> Pair | None:
            rows = super().read(what)
            return Pair(*(a[:, :, ::-1].copy() for a in rows)) if what == "view" and rows else rows


class ViewsNoSequences(OnGrowing):
    """Its views are rows of no sequence."""

    class cache(Growing):
        def read(self, what: Readable) -> Pair | None:
            rows = super().read(what)
            return Pair(*(a[:0].copy() for a in rows)) if what == "view" and rows else rows


RESTORED = "growing: append 4; snapshot s 3; rewind 3; restore s 2; view"
COMMITTED = "growing: append 1; speculate r A; draft r 3; commit r 2; view"


def blamed(adapter: object, words: str, level: str) -> set[str]:
    """The clauses that one trace blames, made short."""
    under_test = LocalAdapter(adapter)
    if level == "visible":
        under_test.adapter = under_test.adapter.at_most("visible")
    with under_test.judging("a trace") as tally:
        under_test.judge(from_sentence(words), "explore")
    return {c for f in tally.failures for c in f.clauses}


def test_what_put_rows_back_is_blamed_where_they_are_read_wrongly_later() -> None:
    assert blamed(RestoresTheNewest(), RESTORED, "visible") >= {"SNAP-7", "GROW-4"}
    assert blamed(known_bugs()["SPEC-06/KeepsAnother"].adapter(), COMMITTED, "visible") >= {"DRAFT-18", "GROW-4"}


def test_what_put_rows_back_is_not_blamed_for_what_fails_without_it() -> None:
    found = blamed(ViewsInReverse(), RESTORED.replace("s 2", "s 4"), "visible")
    assert "GROW-4" in found and not any(c.startswith("SNAP-") for c in found)


def test_a_view_without_sequences_is_a_wrong_view() -> None:
    assert "GROW-4" in blamed(ViewsNoSequences(), "growing: append 2; view", "visible")


def test_a_copy_on_write_that_shares_its_page_is_blamed_at_once() -> None:
    (worked,) = index()["PAGE-20"].examples[:1]
    under_test = LocalAdapter(known_bugs()["PAGE-03/KeysOnly"].adapter())
    with under_test.judging("example") as tally:
        under_test.judge(worked.trace, "example")
    assert "PAGE-20" in {c for f in tally.failures for c in f.clauses}
