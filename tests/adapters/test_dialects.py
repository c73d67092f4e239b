"""Dialects: an engine that does what it declares conforms, and one that does something else fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.generate.registry import explorations
from kvconform.generate.strategies import sample
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.notation import from_sentence
from kvspec.reading.clauses import index
from kvspec.records.run import HELD, Record
from kvspec.registry import KINDS, opened
from kvspec.trace import from_json
from support.engines import dialect_engines
from support.running.judging import Wired, broken, clause, record_of, verdicts
from support.running.local_adapter import LocalAdapter
from support.slow import one_in

ROOT = Path(__file__).parents[2]


CHAPTERS = dict.fromkeys(("shares_kept", "shares_broken", "part_kept", "part_broken"), ("page",)) | {
    **dict.fromkeys(("laps_kept", "laps_broken"), ("copy",)),
    "made_after_broken": ("growing", "ring", "mask"),
    **dict.fromkeys(("rounds_kept", "rounds_broken"), ("ring", "mask", "draft")),
}
"""The chapters of engines that have no cache of one sequence, and of one whose masks are wrong."""


def judged(name: str) -> Record:
    return record_of(f"{dialect_engines.__name__}:{name}", CHAPTERS.get(name, ("growing", "ring")), traces=3)


KEPT = (
    *("chunk_kept", "capacity_kept", "strictly_below", "rows_kept", "since_append_kept", "clamped_kept"),
    "at_zero_kept",
    *(
        "keeps_less_one",
        "keeps_window",
        "keeps_all",
        "keeps_more",
        "retains_less_one",
        "left_kept",
        "made_after_kept",
    ),
    *("first_kept", "for_good_kept", "caller_kept", "Views", "wide_kept", "even_kept", "few_kept", "shares_kept"),
    *("laps_kept", "part_kept", "rounds_kept"),
)


@pytest.mark.parametrize("name", one_in(8, KEPT))
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
    "retains_too_few": ("RING-17", "wrong length"),
    "at_zero_broken": ("CACHE-7", "taken though refused"),
    "keeps_too_much": ("RING-1", "wrong row"),
    "keeps_too_few": ("RING-1", "wrong row"),
    "left_broken": ("RING-1", "wrong row"),
    "made_after_broken": ("MASK-2", "wrong row"),
    "made_before_broken": ("RING-1", "refused though owed"),
    "first_broken": ("RING-1", "refused though owed"),
    "for_good_broken": ("CACHE-2", "taken though refused"),
    "opened_declared_first": ("RING-1", "refused though owed"),
    "caller_broken": ("GROW-2", "wrong row"),
    "kernel_broken": ("RING-1", "refused though owed"),
    "ViewsOtherwise": ("GROW-4", "wrong row"),
    "shares_broken": ("PAGE-6", "wrong row"),
    "part_broken": ("PAGE-15", "taken though refused"),
    "laps_broken": ("COPY-6", "taken though refused"),
    "rounds_broken": ("DRAFT-18", "wrong length"),
    "wide_not_declared": ("CACHE-3", "refused though owed"),
}


@pytest.mark.parametrize("name", one_in(8, BROKEN))
def test_what_is_declared_and_broken_is_a_breach(name: str) -> None:
    blamed, cause = BROKEN[name]
    seen = judged(name)
    assert seen.exit_status == 1 and blamed in broken(seen)
    assert cause in {f.cause for f in seen.failures}


@pytest.mark.parametrize("name", one_in(2, ["WithViews", "BelowWithViews"]))
def test_a_law_on_what_is_refused_says_nothing(name: str) -> None:
    seen = judged(name)
    assert broken(seen) == set() and verdicts(seen)["CACHE-10"] in HELD


def test_what_a_dialect_leaves_nothing_to_show_is_not_claimed() -> None:
    seen = judged("clamped_kept")
    assert "range clamped" in clause(seen, "CACHE-7").reason


def test_rows_outside_a_window_are_looked_at_where_it_is_declared_which_are_kept() -> None:
    assert verdicts(judged("keeps_less_one"))["RING-1"] == "PASS"
    assert verdicts(judged("keeps_window"))["RING-1"] == "PARTLY_OBSERVED"


@pytest.mark.parametrize("name", one_in(3, ["wide_broken", "even_broken", "few_broken"]))
def test_what_a_limit_excludes_is_refused(name: str) -> None:
    seen = judged(name)
    assert seen.exit_status == 1 and seen.problems[0].startswith("adapter: it declares ")


def test_a_failure_is_shortened_within_the_limits() -> None:
    traces = [from_json(f.trace) for f in judged("wide_and_too_wide").failures if "RING-1" in f.clauses]
    assert traces and all(trace.config.window == 2 for trace in traces)


def test_what_the_adapter_makes_up_is_set_apart() -> None:
    seen = judged("caller_kept")
    assert (verdicts(seen)["GROW-2"], verdicts(seen)["GROW-5"]) == ("PASS", "BY_ADAPTER")
    assert clause(seen, "GROW-1").reason.startswith("the adapter answers")


def test_a_config_that_is_not_opened_blames_the_clause_on_configs() -> None:
    (first, *_) = [f for f in judged("wide_not_declared").failures if f.clauses == ["CACHE-3"]]
    assert "window=1" in first.words and "opening ring" in first.message and first.steps == []


def test_a_question_that_is_not_to_be_claimed_is_left_out() -> None:
    silent = dialect_engines.adapter(dialect_engines.WindowCache, without=("ask",))
    assert "rewind" in silent.describe()["chapters"]["ring"]["with"]
    assert "ask" not in silent.describe()["chapters"]["ring"]["with"]


def test_a_dialect_of_a_chapter_that_is_not_claimed_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"dialect rewind: write its chapter too: ring\.rewind"):
        dialect_engines.adapter(dialect_engines.WindowCache, dialect={"rewind": "below"})
    with pytest.raises(
        TypeError, match="without: unknown ability 'aks'; known: history, offset, bits, view, rewind, ask"
    ):
        dialect_engines.adapter(dialect_engines.WindowCache, without=("aks",))
    with pytest.raises(TypeError, match=r"mask\.made: the adapter claims ring"):
        dialect_engines.adapter(dialect_engines.WindowCache, dialect={"mask.made": "after"}, mask=None)


def test_each_kind_names_the_clause_on_its_configs() -> None:
    assert [kind for kind in KINDS if opened(kind).opens not in index()] == []


def test_an_append_that_is_refused_hands_out_nothing() -> None:
    name = f"{dialect_engines.__name__}:keeps_more"
    worker: Any = Wired(name)
    trace = from_sentence("ring window=2: append 1; rewind 0; append 1 values=3; append 1")
    assert AdapterUnderTest(worker, worker.describe()).run(trace).differences == []


DRAWN = {"rows_kept": "rewinds that a ring refuses by default", "clamped_kept": "rewinds to nowhere that succeed"}


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_shows_a_dialect_beyond_its_own_traces(name: str) -> None:
    under_test, shown = LocalAdapter(getattr(dialect_engines, name)), 0
    for trace in fitted(sample.some(explorations()["ring"][0].strategy(), 30, 0), under_test.adapter):
        declared, usual = under_test.run(trace), LocalAdapter(Reference()).run(trace)
        pairs = zip(trace.ops, declared.steps, usual.steps, strict=False)
        shown += sum(op["op"] == "rewind" and a.result == "ok" != b.result for op, (a, _), (b, _) in pairs)
    assert shown >= 2
