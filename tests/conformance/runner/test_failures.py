"""A failure that needs another trace before it, in the same process, is told with that trace; others are not."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from msgspec import UNSET

from kvconform.runner.failures import SHORT, SHORTENED
from kvconform.runner.under_test import AdapterUnderTest, Differs
from kvconform.worker.client import Worker, python_worker
from kvreports import json_file
from kvreports.run import replay
from kvspec import notation
from kvspec.records.run import Failure, Record
from support import fakes
from support.fakes.adapters import AcceptsAnyRewind
from support.running import command_line
from support.running.local_adapter import LocalAdapter

SHARES = "support.fakes.lies:SharesABuffer"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run on an engine whose caches share a buffer: its folder, its status, its record."""
    folder = tmp_path_factory.mktemp("report")
    options = ("--clause", "GROW-2", "--quick", "--traces", "3", "--processes", "1", "--report", folder)
    done = command_line.kvconform("run", SHARES, *options)
    return folder, done, json_file.load(folder / "record.json", Record)


def failures(record: Record) -> list[Failure]:
    return [f for f in record.failures if f.after is not UNSET]


def test_a_failure_that_needs_a_predecessor_keeps_both(run: Any) -> None:
    folder, done, record = run
    assert done.returncode == record.exit_status == 1 and failures(record)
    assert all(f.deterministic for f in record.failures), "it fails each time after the same trace"
    alone = [f.words for f in record.failures if f.after is UNSET]
    assert all("open " in words or "free" in words for words in alone), "one of two caches, or lives, fails alone"
    first = failures(record)[0]
    assert first.after is not UNSET and first.after.words in done.stdout.replace("\n  ", " ")
    assert "only after another trace in the same process" in done.stdout
    kept = sorted(file.name for file in (folder / "failures").iterdir())
    assert len(kept) == len(record.failures) + len(failures(record)) and "01-GROW-2-after.json" in kept
    for page in ("report.html", "report.md"):
        assert "only after another trace in the same process" in (folder / page).read_text()


def test_the_command_of_the_report_replays_both(run: Any) -> None:
    _, _, record = run
    words = replay.command(failures(record)[0], record)
    again = command_line.kvconform(*shlex.split(words)[1:])
    assert "--after" in words and again.returncode == 1 and "FAIL: GROW-" in again.stdout


def test_by_itself_it_passes(run: Any) -> None:
    _, _, record = run
    for failed in failures(record)[:2]:
        assert command_line.kvconform("replay", failed.words, "--adapter", SHARES).returncode == 0


def judged(adapter: str, *sentences: str) -> list[Failure]:
    with Worker(python_worker(adapter), env=fakes.environment()) as worker:
        under_test = AdapterUnderTest(worker, worker.describe())
        with under_test.judging("traces") as tally:
            for words in sentences:
                under_test.judge(notation.from_sentence(words), "explore")
    return tally.failures


def test_what_fails_by_itself_needs_nothing_before_it() -> None:
    found = judged("support.fakes.adapters:AcceptsAnyRewind", "growing: append 2", "growing: append 1; rewind 3")
    assert found and all(f.after is UNSET and f.deterministic for f in found)


def test_the_newest_trace_after_which_it_fails_is_told() -> None:
    found = judged(SHARES, "growing dtype=f32: append 3", "growing: append 3", "growing: append 1; view")
    assert [f.after is UNSET for f in found] == [False]
    assert found[0].after is not UNSET and found[0].after.words == "growing: append 3"


@pytest.mark.parametrize(("short", "times"), [(0, SHORTENED), (SHORT, 1)])
def test_a_failure_is_made_short_in_a_few_checks_and_counted_in_the_others(
    short: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once is enough where it has become as short as anybody wants it."""
    monkeypatch.setattr("kvconform.runner.failures.SHORT", short)
    under_test = LocalAdapter(AcceptsAnyRewind(), traces=5)
    trace = notation.trace("growing", "", "append 1; rewind 3")
    made_short = list[int]()
    for n in range(SHORTENED + 2):
        with under_test.judging(f"check {n}") as tally:
            under_test.judge(trace, "explore")
            with pytest.raises(Differs, match="CACHE-7"):
                under_test.require_no_difference()
        made_short.append(len(tally.failures))
        assert tally.broken and tally.failing == 1
    assert made_short == [1] * times + [0] * (SHORTENED + 2 - times)
