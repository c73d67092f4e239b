"""A check as a task: what it finds, how the harness's own failures are told, what a pool may lose."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.checks import pooled_task
from kvconform.checks.check import Check, judge, judge_here
from kvconform.checks.suite import suite
from kvconform.runner.pool import opened
from kvconform.runner.record.record import record
from kvconform.runner.settings import Settings
from kvconform.runner.under_test import AdapterUnderTest, Differs
from kvconform.runner.verdict.tally import CheckResult, Tally
from kvspec.reading.clauses import index
from kvspec.records.run import Record
from support.fakes import adapters as fake_adapters
from support.running import judging
from support.running.local_adapter import LocalAdapter

CLAUSE, EXAMPLE = "GROW-1", "growing/example/GROW-1.1"


class NamedDiffers(Reference):
    """Right in everything; only its name is made to be mistaken."""

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"name": "Differs"}


def check(run: Callable[[AdapterUnderTest], None], clause: str = CLAUSE) -> Check:
    return Check(EXAMPLE, "growing", frozenset(), run, clause)


def told(result: CheckResult, under_test: AdapterUnderTest) -> Record:
    """The record of this check alone."""
    return record(result.tally, under_test.adapter, {CLAUSE: index()[CLAUSE]}, judging.ABOUT)


def fails(under_test: AdapterUnderTest) -> None:
    raise RuntimeError(f"{under_test.adapter.name}: the harness lost its way")


ODD = {
    "no text": 7,
    "a pickle": pickle.dumps(CheckResult(EXAMPLE, Tally())),
    "half of one": CheckResult(EXAMPLE, Tally()).dumps()[:-9],
    "another form": '{"check": "growing/example/GROW-1.1", "tally": []}',
    "another check's": CheckResult("growing/example/GROW-1.2", Tally()).dumps(),
}
"""What a process of a pool, or a machine of a cluster, may answer in place of a result."""


@pytest.mark.parametrize("answer", ODD)
def test_a_verdict_comes_back_as_json_and_what_is_none_is_a_failure_of_the_harness(answer: str) -> None:
    future, asked = Future[Any](), check(fails)
    future.set_result(CheckResult(EXAMPLE, Tally()).dumps())
    assert not pooled_task._result(asked, future).error
    odd = Future[Any]()
    odd.set_result(ODD[answer])
    result = pooled_task._result(asked, odd)
    assert result.error and told(result, LocalAdapter(NamedDiffers())).exit_status == 3


def test_a_failure_of_the_harness_is_told_by_its_type() -> None:
    """By its text it was once taken for a difference, and no difference being counted, for a pass."""
    under_test = LocalAdapter(NamedDiffers())
    result = judge(under_test, check(fails))
    whole = told(result, under_test)
    assert (judging.verdicts(whole), whole.exit_status) == ({CLAUSE: "HARNESS_ERROR"}, 3)
    assert whole.problems == [f"harness: {EXAMPLE}: RuntimeError: Differs: the harness lost its way"]
    assert "Differs: the harness" in result.error and "Traceback" in result.error and not result.difference


def test_a_clause_that_another_check_exercised_is_no_pass_where_its_own_check_failed() -> None:
    under_test = LocalAdapter(NamedDiffers())
    tally = judge(under_test, suite()["growing/example/GROW-2.1"]).tally
    assert CLAUSE in tally.exercised
    tally.merge(judge(under_test, check(fails)).tally)
    assert judging.verdicts(told(CheckResult(EXAMPLE, tally), under_test)) == {CLAUSE: "HARNESS_ERROR"}


def test_what_differs_and_then_fails_is_both() -> None:
    def differs_and_fails(under_test: AdapterUnderTest) -> None:
        suite()["growing/example/CACHE-7.1"].run(under_test)
        fails(under_test)

    under_test = LocalAdapter(fake_adapters.AcceptsAnyRewind())
    result = judge(under_test, check(differs_and_fails, "CACHE-7"))
    whole = record(result.tally, under_test.adapter, {"CACHE-7": index()["CACHE-7"]}, judging.ABOUT)
    assert judging.verdicts(whole) == {"CACHE-7": "FAIL"} and whole.exit_status == 1
    assert len(whole.problems) == 1 and result.error


def test_a_failure_of_a_check_that_is_of_no_clause_is_a_problem_of_the_run() -> None:
    under_test = LocalAdapter(NamedDiffers())
    tally = judge(under_test, suite()[EXAMPLE]).tally
    tally.merge(judge(under_test, check(fails, clause="")).tally)
    whole = told(CheckResult(EXAMPLE, tally), under_test)
    assert (judging.verdicts(whole), whole.exit_status) == ({CLAUSE: "PASS"}, 3)


@pytest.mark.parametrize("ends", [SystemExit("Differs"), MemoryError("Differs"), BaseException("Differs")])
def test_whatever_is_raised_is_told(ends: BaseException) -> None:
    def run(under_test: AdapterUnderTest) -> None:
        raise ends

    under_test = LocalAdapter(NamedDiffers())
    assert judging.verdicts(told(judge(under_test, check(run)), under_test)) == {CLAUSE: "HARNESS_ERROR"}


def test_a_difference_is_told_by_the_shortest_trace() -> None:
    under_test = LocalAdapter(fake_adapters.AcceptsAnyRewind())
    result = judge(under_test, suite()["growing/example/CACHE-7.1"])
    assert result.difference.startswith("FAIL CACHE-7: ") and not result.error and result.operations
    with pytest.raises(Differs):
        under_test.require_no_difference()


def test_an_interruption_keeps_what_was_judged() -> None:
    def run(under_test: AdapterUnderTest) -> None:
        suite()[EXAMPLE].run(under_test)
        raise KeyboardInterrupt

    under_test = LocalAdapter(NamedDiffers())
    results = judge_here(under_test, [check(run), check(fails)])
    result = next(results)
    assert result.interrupted and CLAUSE in result.tally.exercised and not result.error
    with pytest.raises(KeyboardInterrupt):
        next(results)


def dies(under_test: AdapterUnderTest, folder: Path, times: int) -> None:
    """Ends the process that judges, as often as said."""
    (folder / str(os.getpid())).touch()
    if len(list(folder.iterdir())) <= times:
        os._exit(3)


@pytest.mark.parametrize(("times", "verdict"), [(1, "PASS"), (2, "HARNESS_ERROR")])
def test_a_check_whose_process_died_is_repeated_once(
    times: int, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(under_test: AdapterUnderTest) -> None:
        dies(under_test, tmp_path, times)
        suite()[EXAMPLE].run(under_test)

    planted = {EXAMPLE: check(run), "growing/example/GROW-2.1": suite()["growing/example/GROW-2.1"]}
    monkeypatch.setattr(pooled_task, "by_id", planted.__getitem__)  # processes of the pool are forked, and see it
    monkeypatch.setattr(pooled_task, "opened", lambda settings: LocalAdapter(Reference()))
    with opened(2) as pool:
        results = {r.check: r for r in pooled_task.judge_on(pool, Settings("reference"), list(planted.values()))}
    assert results["growing/example/GROW-2.1"].tally.exercised
    whole = told(results[EXAMPLE], LocalAdapter(Reference()))
    assert judging.verdicts(whole) == {CLAUSE: verdict}
    assert bool(whole.problems) == (verdict == "HARNESS_ERROR")
    if whole.problems:
        assert whole.problems == [f"harness: {EXAMPLE}: the process that judged it ended with status 3, twice"]


def test_what_a_pool_raises_is_told() -> None:
    with opened(1) as pool:
        (result,) = pooled_task.judge_on(pool, Settings("no-such-adapter"), [suite()[EXAMPLE]])
    assert "no-such-adapter" in result.error
    assert judging.verdicts(told(result, LocalAdapter(Reference()))) == {CLAUSE: "HARNESS_ERROR"}
