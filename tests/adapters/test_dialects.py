"""Dialects: an engine that does what it declares conforms, and one that does something else fails."""

from __future__ import annotations

import pytest

from kvspec.records.run import Record
from support import dialect_engines
from support.judging import broken, clause, record_of, verdicts


def judged(name: str) -> Record:
    return record_of(f"{dialect_engines.__name__}:{name}", ("ring",), traces=3)


KEPT = (
    *("chunk_kept", "capacity_kept", "strictly_below", "rows_kept", "since_append_kept", "clamped_kept"),
    *("keeps_less_one", "keeps_window", "keeps_all", "keeps_more"),
)


@pytest.mark.parametrize("name", KEPT)
def test_what_is_declared_and_kept_is_no_breach(name: str) -> None:
    seen = judged(name)
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0), seen.failures[:1]


BROKEN = {
    "chunk_refuses_less": ("RING-3", "refused though owed"),
    "chunk_takes_more": ("RING-3", "taken though refused"),
    "capacity_broken": ("RING-3", "refused though owed"),
    "rows_broken": ("RING-10", "taken though refused"),
    "since_append_broken": ("RING-1", "wrong row"),
    "clamped_broken": ("RING-6", "wrong length"),
    "keeps_too_much": ("RING-1", "wrong row"),
    "keeps_too_few": ("RING-1", "wrong row"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_declared_and_broken_is_a_breach(name: str) -> None:
    blamed, cause = BROKEN[name]
    seen = judged(name)
    assert seen.exit_status == 1 and blamed in broken(seen)
    assert cause in {f.cause for f in seen.failures if blamed in f.clauses}


def test_what_a_dialect_leaves_nothing_to_show_is_not_claimed() -> None:
    seen = judged("clamped_kept")
    assert "range clamped" in clause(seen, "RING-9").reason


def test_rows_outside_a_window_are_looked_at_where_it_is_declared_which_are_kept() -> None:
    assert verdicts(judged("keeps_less_one"))["RING-1"] == "PASS"
    assert verdicts(judged("keeps_window"))["RING-1"] == "PARTLY_OBSERVED"
