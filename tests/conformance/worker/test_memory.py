"""The memory of a worker is watched while it is asked and between questions; its peak is known."""

from __future__ import annotations

import os
import signal

import pytest

from kvconform.runner.record.record import record
from kvconform.runner.under_test import AdapterUnderTest
from kvconform.worker.remote_session import RemoteSession
from kvreports.run import text
from kvspec import notation
from support import fakes
from support.running.judging import ABOUT
from support.running.workers import CONFIG, append, worker


@pytest.mark.parametrize("name", ["EatsMemory", "EatsMemoryAndAnswers"])
def test_memory_over_the_limit_is_seen_while_waiting_and_between_answers(name: str, pids: list[int]) -> None:
    with worker(fakes.adapter(name), memory_limit=300 << 20) as w:
        session = RemoteSession(w, ["state", "history", "offset"])
        session.begin("growing", CONFIG)
        results = [append(session).result for _ in range(100)]
        assert "oom" in results and set(results) <= {"ok", "oom", "absent"}
        assert 300 << 20 < w.peak_rss < 3000 << 20


def test_a_process_that_keeps_memory_in_each_trace_is_started_anew_and_no_trace_is_blamed(
    pids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps 8 MiB at every append: 60 traces keep 480 MiB, and the limit is 300. All come within one tick."""
    monkeypatch.setattr("kvconform.worker.client.TICK", 10.0)
    trace = notation.from_sentence("growing: append 1")
    with worker(fakes.adapter("LeaksAndIsRight"), memory_limit=300 << 20) as w:
        under_test = AdapterUnderTest(w, w.describe())
        with under_test.judging("a check") as tally:
            held = under_test.judge_all([trace] * 60, "explore", "growing")
    assert len(held) == 60 and tally.failures == [] and w.peak_rss < 300 << 20
    assert tally.restarts == w.starts - 1 >= 2
    whole = record(tally, under_test.adapter, {}, ABOUT)
    assert whole.memory["restarts"] == tally.restarts
    assert f"started anew {tally.restarts} times, because its memory had grown" in text.render([whole], {}, 200)
    whole.memory["restarts"] = 1
    assert "started anew once, because its memory had grown" in text.render([whole], {}, 200)


def test_what_a_process_loads_before_its_first_trace_is_no_growth(pids: list[int]) -> None:
    with worker(fakes.adapter("LoadsMuch"), memory_limit=300 << 20) as w:
        under_test = AdapterUnderTest(w, w.describe())
        with under_test.judging("a check") as tally:
            under_test.judge_all([notation.from_sentence("growing: append 1")] * 3, "explore", "growing")
    assert (tally.failures, tally.restarts, w.starts) == ([], 0, 1)


def test_the_peak_is_known_even_if_nobody_looked_in_time(pids: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvconform.worker.client.TICK", 10.0)
    with worker(fakes.adapter("Honest")) as w:
        w.describe()
    assert 10 << 20 < w.peak_rss < 300 << 20


def test_the_peak_is_known_of_a_process_that_died(pids: list[int]) -> None:
    with worker(fakes.adapter("Hangs")) as w:
        session = RemoteSession(w)
        session.begin("growing", CONFIG)
        os.kill(pids[0], signal.SIGKILL)
        assert append(session).result == "crash"
    assert 10 << 20 < w.peak_rss < 300 << 20
