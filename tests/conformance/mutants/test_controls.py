"""Controls: caches that are right and stored otherwise are left alone; what must be found is, and by its clause."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.checks import examples
from kvspec import notation
from kvspec.contract import Pair
from kvspec.geometry import Array, Config
from kvspec.masks import Logical
from kvspec.reading.clauses import examples_of, index
from kvspec.rows.legible import legible
from kvworkshop import controls, correct_variants
from kvworkshop.correct_variants import (
    FromTheEnd,
    LazyWrites,
    PagedRing,
    RowLimit,
    Transposed,
    lazy_writes,
    linked,
    paged_ring,
)
from kvworkshop.correct_variants.lazy_writes import LateRows
from kvworkshop.correct_variants.paged_ring import BACK, PAGE, WindowPages
from kvworkshop.correct_variants.row_limit import StaticBounded
from support.running.local_adapter import LocalAdapter

EVERY = 4
"""One worked example in so many: the hunt of `kvconform mutants --kind controls` takes them all."""


def judged(adapter: Any, chapters: tuple[str, ...], every: int = 1) -> LocalAdapter:
    """The adapter under test after worked examples of some chapters."""
    under_test = LocalAdapter(adapter)
    worked = [e for c in chapters for e in examples_of(c) if index()[e.clause].level == "visible"]
    with under_test.judging("examples"):
        for example in worked[::every]:
            examples.judge(under_test, example)
    return under_test


@pytest.mark.parametrize("variant", correct_variants.VARIANTS)
def test_who_is_right_and_stores_otherwise_is_left_alone(variant: type[Any]) -> None:
    under_test = judged(variant(), correct_variants.VARIANTS[variant], EVERY)
    assert not under_test.tally.failures and not under_test.tally.own
    assert under_test.tally.exercised


@pytest.mark.parametrize("wrong", controls.WRONG)
def test_who_must_be_found_is_found_by_its_clause(wrong: type[Any]) -> None:
    clauses = controls.WRONG[wrong]
    under_test = judged(wrong(), tuple(chapter for c in clauses for chapter in index()[c].chapters))
    assert set(clauses) <= {c for f in under_test.tally.failures for c in f.clauses}


def test_the_variants_do_store_otherwise() -> None:
    """Chunks are as many as appends; heads lie side by side over all layers; pages come from the top."""
    chunks: Any = correct_variants.Linked().open("growing", Config())
    heads: Any = correct_variants.HeadMajor().open("store", Config(layers=3, max_len=2))
    assert heads.keys[0].base is heads.keys[2].base
    assert isinstance(chunks.rows, linked.Chunks)
    trace = notation.trace("page", "pages=4 page_size=1", "admit; append 1")
    seen = LocalAdapter(correct_variants.FromTheTop()).run(trace)
    assert not seen.failed and seen.steps[-1][1].values["table.0"] == [3]


def fed(adapter: Any, kind: str, appends: int, **sizes: int) -> Any:
    """A cache of this kind after so many appends of one row."""
    cache: Any = adapter.open(kind, config := Config(**sizes))
    for serial in range(appends):
        cache.append(*(legible(config, array, serial, 1) for array in "kv"))
    return cache


def test_columns_and_rows_from_the_end_lie_so_in_memory() -> None:
    kinds: dict[str, dict[str, int]] = {"growing": {}, "ring": {"window": 4}, "sink": {"window": 4, "sinks": 1}}
    for kind, sizes in kinds.items():
        columns, backwards = (fed(v(), kind, 6, **sizes) for v in (Transposed, FromTheEnd))
        assert columns.rows.keys.strides[3] > columns.rows.keys.strides[2] > 0
        assert backwards.rows.keys.strides[2] < 0


def test_pages_in_front_of_the_window_are_used_again() -> None:
    ring = fed(PagedRing(), "ring", 40, window=4)
    slots = ring.rows.keys.shape[2]
    assert slots < 40 and ring.rows.first > 30 and len(ring.rows.table) + len(ring.rows.free) == slots // PAGE


def test_a_static_buffer_is_handed_out_whole_and_late_rows_are_not_written() -> None:
    static, late = fed(RowLimit(), "bounded", 2, max_len=5), fed(LazyWrites(), "growing", 2)
    assert static.read("history").keys.shape[2] == 5 and static.mask(()).tolist() == [[[[True] * 2 + [False] * 3]]]
    assert len(late.rows.waiting) == 2 and late.rows.written.keys.shape[2] == 0
    assert late.read("history").keys.shape[2] == 2


class GivesBackTooEarly(WindowPages):
    """A page goes back while the window still has its last row."""

    def keep(self, start: int, stop: int) -> None:
        super().keep(start + BACK + 1, stop)


class KeepsTheFirstWrite(LateRows):
    """Where writes wait for the same slot, the first one counts."""

    def read(self, start: int, stop: int) -> Pair:
        self.waiting.reverse()
        rows = super().read(start, stop)
        self.waiting.reverse()
        return rows


class ShowsSpareSlots(StaticBounded):
    """The mask lets queries see all of the buffer."""

    def mask(self, logical: Logical) -> Array | None:
        mask = super().mask(logical)
        return mask if mask is None else np.ones_like(mask)


PLANTED = (
    (PagedRing, paged_ring, "WindowPages", GivesBackTooEarly, "RING-3"),
    (LazyWrites, lazy_writes, "LateRows", KeepsTheFirstWrite, "GROW-2"),
    (RowLimit, RowLimit, "bounded", ShowsSpareSlots, "BOUNDED-15"),
)
"""Designs, where a part of them stands, a wrong part, and a clause that must be blamed."""


@pytest.mark.parametrize(("variant", "where", "name", "wrong", "clause"), PLANTED)
def test_the_same_design_with_a_bug_is_found(
    variant: Any, where: Any, name: str, wrong: Any, clause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, wrong)
    under_test = judged(variant(), index()[clause].chapters)
    assert clause in {c for f in under_test.tally.failures for c in f.clauses}


DRAFTS = "append 1; speculate r A; draft r 2; draft r 3; commit r 5; append 1"
"""More drafts at once, and in all, than rows that a ring with a window of one row takes."""


def test_a_ring_that_takes_few_rows_at_once_takes_any_drafts() -> None:
    """It failed once: the list model refused such drafts, although RING-3 speaks of appends."""
    trace = notation.trace("ring", "window=1", DRAFTS)
    assert not LocalAdapter(PagedRing()).run(trace).failed


class CommitsAtOnce(PagedRing):
    """A commit is one append, and refused if it is of too many rows."""

    speculate = Reference.speculate


def test_a_commit_of_more_rows_than_a_ring_takes_at_once_is_owed() -> None:
    trial = LocalAdapter(CommitsAtOnce()).run(notation.trace("ring", "window=1", DRAFTS))
    assert trial.failed and len(trial.steps) == 5


def test_every_control_says_whether_it_must_live() -> None:
    lives = {m.id: m.is_control for m in controls.mutants()}
    assert {f"control/{v.__name__}" for v in correct_variants.VARIANTS} <= {i for i, live in lives.items() if live}
    assert {f"control/{v.__name__}" for v in controls.WRONG} == {i for i, live in lives.items() if not live}


def test_the_table_of_a_clause_of_storage_is_not_read_at_level_visible() -> None:
    """PAGE-32 says at level storage when a page is refused; a pool that takes pages from the top claims visible."""
    under_test = LocalAdapter(correct_variants.FromTheTop())
    (worked, *_) = index()["PAGE-32"].examples
    assert index()["PAGE-32"].level == "storage" and under_test.adapter.chapters["page"].level == "visible"
    examples.judge(under_test, worked)
    assert under_test.tally.own == {} and under_test.tally.failures == []
