"""A right cache that keeps memory is blamed on no clause: its process is started anew, or its trace is judged up to
the limit, and the record says so. An operation that takes too much by itself is to blame."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kvconform.judge.trial_result import TrialResult
from kvconform.runner.record.record import record
from kvconform.runner.under_test import AdapterUnderTest
from kvconform.worker.client import Worker
from kvreports.run import text
from kvreports.run.standing import standing
from kvspec.notation import from_sentence
from kvspec.reading.clauses import index
from kvspec.records.run import Record
from support import fakes
from support.running import command_line
from support.running.judging import ABOUT, verdicts

LIMIT = 300
"""MiB."""

pytestmark = pytest.mark.usefixtures("looked_at_each_time")

SHORT = "growing: append 1; rewind 0"
LONG = "growing: " + "; ".join(["append 1"] * 40 + ["view"])
REWINDS = "growing: append 1; " + "; ".join(["rewind 0"] * 20)


@pytest.fixture
def looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is quick is not seen between two ticks, and blamed on nothing anyway."""
    monkeypatch.setattr("kvconform.worker.client.TICK", 0.0)


@contextmanager
def judge(leak: str) -> Iterator[AdapterUnderTest]:
    """A leak under test."""
    command = [sys.executable, "-m", "kvadapters.serve", f"support.fakes.leaks:{leak}"]
    with Worker(command, env=fakes.environment(), memory_limit=LIMIT << 20) as worker:
        under_test = AdapterUnderTest(worker, worker.describe())
        with under_test.judging("growing/explore/all"):
            yield under_test


def told(under_test: AdapterUnderTest) -> Record:
    """The record of what was judged."""
    clauses = {c.id: c for c in index().values() if c.chapter == "growing" and c.claimed(("growing",))}
    return record(under_test.tally, under_test.adapter, clauses, ABOUT)


@pytest.mark.parametrize(("leak", "words", "traces"), [("KeepsALittle", LONG, 40), ("KeepsAtRewind", SHORT, 30)])
def test_what_many_traces_keep_starts_the_process_anew(leak: str, words: str, traces: int) -> None:
    with judge(leak) as under_test:
        held = under_test.judge_all([from_sentence(words)] * traces, "explore", "growing")
        assert len(held) == traces and not under_test.tally.problems and not under_test.tally.failures
        assert under_test.tally.restarts == under_test.worker.starts - 1 >= 1
        assert "because its memory had grown" in text.render([told(under_test)], {}, 200)


def test_a_trace_that_fits_alone_is_judged_again_alone() -> None:
    """A trace before it keeps 64 MiB, less than is much; alone it keeps 200 MiB, which fit."""
    with judge("KeepsAtAppend") as under_test:
        before, trace = (from_sentence("growing: " + "; ".join(["append 1"] * n)) for n in (8, 25))
        assert under_test.judge_all([before, trace], "explore", "growing") == [before, trace]
        assert (under_test.tally.restarts, under_test.worker.starts, under_test.tally.problems) == (1, 2, [])


@pytest.mark.parametrize(
    ("leak", "words", "most"),
    [("KeepsAtAppend", LONG, "append, about 8 MiB each"), ("KeepsAtRewind", REWINDS, "rewind, about 32 MiB each")],
)
def test_a_trace_that_goes_over_the_limit_is_judged_up_to_there_and_blames_no_clause(
    leak: str, words: str, most: str
) -> None:
    trace = from_sentence(words)
    with judge(leak) as under_test:
        seen = under_test.judge(trace, "explore")
        assert not seen.failed and 5 < len(seen.steps) < len(trace.ops) and not under_test.tally.failures
        assert f"the limit of {LIMIT} MiB was reached in one trace" in seen.over_memory
        assert f"(most by {most})" in seen.over_memory and "--memory" in seen.over_memory
        whole = told(under_test)
        assert whole.exit_status == 3 and set(verdicts(whole).values()) <= {"PASS", "NOT_RUN", "NOT_CLAIMED"}
        assert standing(whole).words == "The limit of memory was reached"
        assert whole.problems[0] == seen.over_memory
        assert sum("the limit of 300 MiB" in line for line in text.render([whole], {}, 1000).splitlines()) >= 1


def test_a_run_of_operations_is_counted_by_them() -> None:
    with judge("KeepsAtAppend") as under_test:
        seen = under_test.judge(from_sentence("growing: append 1; run 100 {append 1}; view"), "explore")
        assert "(most by append, about" in seen.over_memory and len(seen.steps) == 1


def test_traces_that_go_over_the_limit_end_the_check_and_are_told_once() -> None:
    with judge("KeepsAtAppend") as under_test:
        held = under_test.judge_all([from_sentence(LONG)] * 9, "explore", "growing")
        assert held == [] and under_test.tally.judged == 3 and under_test.budget_used >= 1
        assert len([p for p in told(under_test).problems if p.startswith("memory: ")]) == 1


def test_an_operation_that_takes_too_much_by_itself_is_to_blame() -> None:
    with judge("KeepsWhatNoTraceHasRoomFor") as under_test:
        seen: TrialResult = under_test.judge(from_sentence("growing: append 2; free; append 1"), "explore")
        assert (seen.verdict, seen.over_memory) == ("OOM", "") and "CACHE-6" in seen.blamed
        assert under_test.take_all == {"free"}
        starts = under_test.worker.starts
        under_test.trial(from_sentence("growing: free"))
        assert under_test.worker.starts == starts + 1, "what is known to take too much is not looked at again"


def test_what_is_wrong_is_found_before_the_limit() -> None:
    with judge("LosesARowAndKeeps") as under_test:
        assert (
            under_test.judge(from_sentence("growing: append 3; rewind 2; " + LONG[9:]), "explore").verdict == "FAIL"
        )
        assert told(under_test).exit_status == 1


@pytest.mark.slow  # the same in a whole command
def test_a_run_of_a_leak_says_what_to_do() -> None:
    adapter, limits = (
        "support.fakes.leaks:KeepsAtAppend",
        ["--quick", "--chapter", "growing", "--memory", str(LIMIT)],
    )
    status, seen, _ = command_line.run(adapter, *limits)
    assert status == seen.exit_status == 3 and seen.failures == []
    assert any(problem.startswith("memory: ") for problem in seen.problems)
