"""A clause with a condition is cited only where it holds, and blamed only where it can be at fault."""

from __future__ import annotations

from typing import Any

import pytest

from kvconform.bugs.known_bugs import known_bugs
from kvconform.judge import trial
from kvconform.oracle.reference import CitingReference, claims
from kvref.caches.growing import Growing
from kvref.caches.page import Pages
from kvref.caches.ring import Ring
from kvspec import notation
from kvspec.contract import Pair
from kvspec.geometry import Array
from kvspec.masks import Causal, Logical, Window
from kvspec.reading.clauses import index
from kvspec.session.driver import Session
from support.fakes.fresh_bugs import having

BUCKET = "bucket kv_heads=1 layers=1 bounds=2-4: prefill {}; decode"

CITED = [
    ("ROPE-21", "growing: append 3; attend 1 rope=neox", False),
    ("ROPE-21", "growing: append 3; rewind 1; attend 1 rope=neox", True),
    ("ROPE-21", "growing: append 3; free; attend 1 rope=neox; attend 1 rope=neox", True),
    ("ROPE-2", "growing: rotate 1 0", False),
    ("ROPE-2", "growing: rotate 2 0", True),
    ("SNAP-3", "growing: append 3; snapshot s; append 1; rewind 3; restore s 3", False),
    ("SNAP-3", "growing: append 3; snapshot s; rewind 1; append 1; restore s 3", True),
    ("SNAP-3", "ring window=2: append 3; snapshot s; append 1; restore s 3", True),
    (
        "SNAP-3",
        "growing: append 3; snapshot s; open B; B: restore s 3; B: rewind 0; B: append 1; restore s 3",
        True,
    ),
    ("SNAP-4", "growing: append 3; snapshot s; rewind 1; restore s 3", False),
    ("SNAP-4", "growing: append 3; snapshot s; rewind 1; restore s 3; restore s 2", True),
    ("SNAP-4", "growing: append 3; snapshot s; open B; B: restore s 3", True),
    ("SNAP-4", "growing: append 3; snapshot s; split s 1 p c; restore p 1", False),
    ("ATTN-9", "growing kv_heads=1: append 2; attend 1 through 101", False),
    ("ATTN-9", "growing kv_heads=2: append 2; attend 1 through 101", True),
    ("ATTN-9", "growing kv_heads=1: append 2; attend 1 through 1", True),
    ("ATTN-6", "ring window=4: attend 3", False),
    ("ATTN-6", "ring window=2: attend 3", True),
    ("BUCKET-5", BUCKET.format(2), False),
    ("BUCKET-5", BUCKET.format(1), True),
    ("BUCKET-12", BUCKET.format(1), False),
    ("BUCKET-12", BUCKET.format(2) + "; decode", True),
    ("PAGE-23", "page page_size=2 pages=4: admit; append 4; truncate 0 2", False),
    ("PAGE-23", "page page_size=2 pages=4: admit; append 4; truncate 0 3", True),
    ("BATCH-11", "store layers=1 max_len=4: append 2; batch 1; scatter 0 2", False),
    ("BATCH-11", "store layers=1 max_len=4: append 2; batch 1; scatter 0 2; scatter 0 1", True),
]
"""Clauses, traces, and whether the last step exercises the clause."""


@pytest.mark.parametrize("level", ["storage", "visible"])
@pytest.mark.parametrize(("clause", "words", "cited"), CITED)
def test_a_clause_is_exercised_where_its_condition_holds(clause: str, words: str, cited: bool, level: str) -> None:
    seen = trial.run(notation.from_sentence(words), CitingReference(), claims(), level)
    assert not seen.failed and all(want.result == "ok" for want, _ in seen.steps), seen.steps[-1]
    assert (clause in seen.steps[-1][0].cites) == cited


def blamed(adapter: Any, words: str, level: str = "storage") -> tuple[str, ...]:
    """The clauses that the first difference of an adapter fails."""
    trace = notation.from_sentence(words)
    observed = trial.observables(trace, claims(), level)
    seen = trial.run(trace, Session(adapter, observed), claims(), level)
    assert seen.failed
    return seen.blamed


class OneRowMore(Ring):
    """The newest row stands where the one before it belongs too."""

    def _prefill(self, new: Pair) -> None:
        super()._prefill(new)
        for held in (self.rows.keys, self.rows.values):
            held[:, :, self.index - 2] = held[:, :, self.index - 1]


class LosesABit(Ring):
    """The last bit of each key is lost."""

    def append(self, keys: Array, values: Array) -> None:
        super().append((keys.view("u2") & 0xFFFE).view(keys.dtype), values)


@pytest.mark.parametrize("level", ["storage", "visible"])
def test_bits_are_at_fault_where_a_row_is_none_that_was_handed_in(level: str) -> None:
    words = "ring window=4: append 3 fill=bits"
    assert "CACHE-5" not in blamed(having(ring=OneRowMore)(), words, level)
    assert "CACHE-5" in blamed(having(ring=LosesABit)(), words, level)


@pytest.mark.parametrize("level", ["storage", "visible"])
def test_what_another_sequence_is_owed_is_at_fault_where_that_differs_alone(level: str) -> None:
    batch = "store kv_heads=1 layers=1 max_len=3: batch 2; step; rollback 0 sequence=1"
    alone = blamed(known_bugs()["wrong-sequence/BatchRollsBackAll"].adapter(), batch, level)
    assert "BATCH-12" in alone and "BATCH-17" not in alone
    scatter = "store kv_heads=1 layers=1 max_len=3: append 1; batch 2; scatter 0 1"
    own = blamed(known_bugs()["SNAP-14/KeysOnly"].adapter(), scatter, level)
    assert "BATCH-6" in own and "BATCH-12" not in own


class Shortens(Pages):
    """A truncate of a sequence takes one row from the first too."""

    def truncate(self, sequence: int, to: int) -> None:
        super().truncate(sequence, to)
        self.in_use[0].length -= 1


def test_a_truncate_that_cuts_another_sequence_is_the_fault_of_what_leaves_others_alone() -> None:
    words = "page page_size=4 pages=4: admit; admit; append 3; append 3 sequence=1; truncate 1 2"
    assert blamed(having(page=Shortens)(), words) == ("PAGE-18",)


class OneLate(Growing):
    """Causal lets each query see one row of its future."""

    def mask(self, logical: Logical) -> Array | None:
        made = super().mask(logical)
        if made is not None and any(isinstance(p, Causal) for p in logical):
            n, columns = made.shape[2:]
            for i in range(n - 1):
                made[:, :, i, columns - n + i + 1] = True
        return made


class OneWide(Growing):
    """A window shows one row too many of the past."""

    def mask(self, logical: Logical) -> Array | None:
        return super().mask(tuple(Window(p.size + 1) if isinstance(p, Window) else p for p in logical))


@pytest.mark.parametrize("level", ["storage", "visible"])
def test_the_past_is_the_fault_of_a_window_and_the_future_that_of_causal(level: str) -> None:
    words = "growing: append 4; mask causal & window=2"
    late, wide = (blamed(having(growing=bug)(), words, level) for bug in (OneLate, OneWide))
    assert "MASK-2" in late and "MASK-4" not in late
    assert "MASK-4" in wide and "MASK-2" not in wide


def test_a_size_of_memory_is_not_at_fault_where_rows_are_wrong() -> None:
    stale = known_bugs()["stale-cursor/GrowingStaleCursor"].adapter()
    found = blamed(stale, "growing step=1: append 2; rewind 1; append 1")
    assert found and all(set(index()[c].seen_in) - {"capacity"} for c in found)
