"""An engine of 20 ms a call: how much a run asks of it, and what it asks first where its time is short."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.checks.check import judge
from kvconform.checks.suite import SOONEST, by_turns, selected, suite
from kvconform.generate.amounts import QUICK_COVERS, QUICK_TRACES, TRACES
from kvconform.judge.trial_result import TrialResult
from kvconform.runner.settings import Settings
from kvconform.runner.verdict.tally import source_of
from kvspec.operations.table import length_of
from support.running.local_adapter import LocalAdapter

CALL = 0.02
"""Seconds that a call takes."""

QUICK, WHOLE = 3 * 60 / CALL, 3600 / CALL
"""The calls that a first full answer on one kind of cache may take, and a whole one."""

AMOUNTS = {
    True: {"traces": QUICK_TRACES, "cover_traces": QUICK_COVERS, "quick": True},
    False: {"traces": TRACES},
}


class Counting(LocalAdapter):
    """Counts calls; a run of several operations is as many."""

    calls = 0

    def run(self, trace: Any, watch: bool = False, past: bool = False) -> TrialResult:
        """Judge a trace."""
        seen = super().run(trace, watch, past)
        self.calls += 1 + sum(map(length_of, trace.ops[: len(seen.steps)]))
        return seen


def calls(kind: str, quick: bool) -> int:
    """Count the calls of a run on one kind of cache."""
    settings = Settings("reference", chapters=(kind,), **AMOUNTS[quick])  # type: ignore[arg-type]
    under_test = Counting(Reference())
    under_test.takes(settings)
    for check in selected(settings, under_test.adapter):
        if source_of(check.id):  # what is asked of the adapter as a whole needs a process
            assert not judge(under_test, check).error
    return under_test.calls


def test_a_first_full_answer_on_a_ring_takes_three_minutes() -> None:
    assert 1000 < calls("ring", quick=True) <= QUICK


@pytest.mark.slow
def test_a_whole_answer_on_a_ring_takes_an_hour() -> None:
    assert calls("ring", quick=False) <= WHOLE


def test_where_time_is_short_all_chapters_have_their_turn() -> None:
    """Wherever a run ends, no chapter is more than one check of a source ahead of another that has some left."""
    ordered = by_turns(suite().values())
    assert sorted(c.id for c in ordered) == sorted(suite())
    total, done = Counter((source_of(c.id), c.chapter) for c in ordered), Counter[tuple[str, str]]()
    for check in ordered:
        source = source_of(check.id)
        done[source, check.chapter] += 1
        behind = [done[at] for at in total if at[0] == source and done[at] < total[at]]
        assert done[source, check.chapter] <= min(behind, default=done[source, check.chapter]) + 1


def test_what_newly_exercises_most_comes_first() -> None:
    places = [SOONEST.index(source_of(check.id)) for check in by_turns(reversed(suite().values()))]
    assert places == sorted(places) and {source_of(id_) for id_ in suite()} - {"explore", ""} < set(SOONEST)
