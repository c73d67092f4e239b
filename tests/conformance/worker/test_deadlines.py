"""A worker that gives no whole answer in time hangs, and is killed at its deadline."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from kvconform.judge import trial
from kvconform.worker import client, waits
from kvconform.worker.client import Hung
from kvconform.worker.remote_session import RemoteSession
from kvspec import notation
from support import fakes
from support.running.workers import CONFIG, NOTHING, append, failure, first_append, worker

HANGS = {
    "never_reads": "no message arrived",
    "stalls_in_mid_tensor": "12 of 16 bytes of tensors",
    "no_newline": "25 bytes of a header",
    "drips": "bytes of a header",
    "floods_standard_error": "no message arrived",
    "closes_its_input": "no message arrived",
}


@pytest.mark.parametrize(("name", "says"), HANGS.items(), ids=HANGS)
def test_no_whole_answer_in_time_is_a_hang(name: str, says: str, pids: list[int]) -> None:
    start = time.monotonic()
    e = failure(worker(fakes.process(name), start_deadline=1.2))
    assert isinstance(e, Hung) and says in e.message and "no answer in 1.2 s" in e.message
    assert 1.2 <= time.monotonic() - start < 30
    assert len(e.stderr) < 100_000


def test_waiting_costs_nothing_even_if_standard_error_is_closed(pids: list[int]) -> None:
    start = time.process_time()
    assert isinstance(failure(worker(fakes.process("closes_its_standard_error"), start_deadline=1.0)), Hung)
    assert time.process_time() - start < 0.4


def test_a_question_that_is_never_read_holds_nobody_longer_than_the_deadline(pids: list[int]) -> None:
    start, large = time.monotonic(), {"keys": np.zeros(16 << 20, np.float32)}
    e = failure(worker(fakes.process("never_reads"), start_deadline=1.2), NOTHING, large)
    assert isinstance(e, Hung) and "bytes of the question were not read" in e.message
    assert time.monotonic() - start < 30


def test_a_question_that_nobody_can_read_any_more_is_a_hang_not_an_error_here(pids: list[int]) -> None:
    large = {"keys": np.zeros(4 << 20, np.float32)}
    e = failure(worker(fakes.process("closes_its_input"), start_deadline=1.2), NOTHING, large)
    assert isinstance(e, Hung)


def test_an_adapter_that_hangs_is_killed_at_the_deadline_of_a_message(pids: list[int]) -> None:
    start = time.monotonic()
    step = first_append("Hangs", deadline=0.5)
    assert (step.result, time.monotonic() - start < 30) == ("hang", True)


SPINS = "import os; os.sched_setaffinity(0, {{{}}})\nwhile True: pass"


def core() -> int:
    return min(os.sched_getaffinity(0))


@contextmanager
def spinning(count: int) -> Iterator[list[int]]:
    """Processes that compute on one core."""
    processes = [subprocess.Popen([sys.executable, "-c", SPINS.format(core())]) for _ in range(count)]
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every thread waited for a core in nine tenths of the time since it is asked after."""
    began = time.monotonic()
    monkeypatch.setattr(waits, "waited", lambda thread: 0.9 * (time.monotonic() - began))


def test_a_slow_call_that_waited_for_a_core_is_no_hang(busy: None) -> None:
    """It takes 0.4 s, most of which it is said to wait."""
    assert first_append("SlowToAppend", deadline=0.15).result == "ok"


def test_a_slow_call_that_waited_for_nothing_is_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "waited", lambda thread: 0.0)
    assert first_append("SlowToAppend", deadline=0.15).result == "hang"


def test_a_hang_is_one_whatever_waits_are_told(busy: None, pids: list[int]) -> None:
    assert first_append("Hangs", deadline=0.15).result == "hang"


@pytest.mark.parametrize(("share", "wanted"), [(0.0, 1.0), (0.5, 2.0), (0.75, 4.0), (1.0, 10.0)])
def test_a_deadline_is_longer_by_the_waits_up_to_ten_deadlines(
    share: float, wanted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(waits, "monotonic", lambda: now)
    monkeypatch.setattr(waits, "waited", lambda thread: share * now)
    deadline = waits.Deadline(1.0, lambda: [os.getpid()])
    while not deadline.is_over():
        now += 1 / 64
    assert now - 100 == pytest.approx(wanted, abs=1 / 32)


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells how long a thread waited for a core")
def test_what_two_processes_on_one_core_wait_is_told() -> None:
    with spinning(2) as pids:
        found = waits.Waits(lambda: pids)
        while found.seconds < 0.1:
            time.sleep(0.01)
            found.look()
        assert [found.anew(within=0.05), found.anew(within=0.05)] == [0.05, 0.0]
    before = found.seconds
    found.look()
    assert found.seconds == before, "they are gone"


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells how long a thread waited for a core")
def test_what_an_engine_starts_meanwhile_waits_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler, and another behind it. What one waited counts when it has ended."""
    engine, family = os.getpid(), [os.getpid()]
    monkeypatch.setattr(waits, "waited", lambda thread: 0.0 if str(engine) in thread.parts else 0.25)
    found = waits.Waits(lambda: family)
    for wanted in (0.25, 0.5):
        with spinning(1) as compiler:
            family += compiler
            found.look()
        assert found.seconds == wanted
        found.look()
        family.remove(compiler[0])
    assert found.seconds == 0.5


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells how long a thread waited for a core")
def test_a_call_that_computes_less_than_its_deadline_is_no_hang_however_busy_the_machine_is() -> None:
    """Four others want the same core. The deadline is longer than what the append computes, and the call is not."""
    with spinning(4), worker(fakes.adapter("ComputesToAppend"), deadline=0.6) as w:
        session = RemoteSession(w, ["state", "history", "offset"])
        assert session.begin("growing", CONFIG).result == "ok"
        assert w._child is not None
        for pid in w._child.family.pids():
            os.sched_setaffinity(pid, {core()})
        assert append(session).result == "ok"


def in_a_run(times: int) -> list[str]:
    """How the operations of a trace end whose second is a run of appends of 0.4 s each; one may take 1.5 s."""
    trace = notation.from_sentence(f"growing: append 1; run {times} {{append 1}}")
    with worker(fakes.adapter("SlowToAppend"), deadline=1.5) as w:
        about = w.describe()
        session = RemoteSession(w, trial.observables(trace, about, "visible"))
        return [found.result for _, found in trial.run(trace, session, about, "visible").steps]


def test_a_run_has_the_time_of_its_operations() -> None:
    assert in_a_run(5) == ["ok", "ok"]


def test_a_run_has_no_more_time_than_that_of_some_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_FOR_A_RUN", 1)
    assert in_a_run(5) == ["ok", "hang"]


def test_the_time_of_a_long_run_follows_from_what_calls_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each append takes 0.4 s. A run has 1.5 s, less than its four operations take; the calls before tell that."""
    monkeypatch.setattr(client, "MOST_FOR_A_RUN", 1)
    trace = notation.from_sentence("growing: append 1; append 1; append 1; run 4 {append 1}")
    with worker(fakes.adapter("SlowToAppend"), deadline=1.5) as w:
        about = w.describe()
        session = RemoteSession(w, trial.observables(trace, about, "visible"))
        seen = trial.run(trace, session, about, "visible")
    assert [found.result for _, found in seen.steps] == ["ok"] * 4


@pytest.mark.parametrize(("each", "wanted"), [(0.1, 1.5), (0.4, 6 * 0.4)])
def test_a_call_of_a_slow_engine_has_the_time_that_calls_took(each: float, wanted: float) -> None:
    with worker(fakes.adapter("SlowToAppend"), deadline=1.5) as w:
        w._begun = True
        for _ in range(client.KNOWN):
            w._pace.note(1, each)
        assert w._allowed(1) == pytest.approx(wanted)
        assert w._allowed(2) == pytest.approx(max(3.0, 12 * each))


def test_an_engine_that_hangs_in_a_long_run_costs_no_more_than_its_calls_tell() -> None:
    pace = client.Pace()
    for _ in range(2):
        pace.note(1, 0.055)
    assert pace.seconds(4100) == 0, "two calls tell nothing: the first may have compiled"
    pace.note(8, 8 * 0.055)
    assert pace.seconds(4100) == pytest.approx(4100 * 0.055)
    for _ in range(client.REMEMBERED):
        pace.note(1, 0.001)
    assert pace.seconds(1000) == pytest.approx(1.0)


def test_an_adapter_that_hangs_in_describe_is_killed_at_the_deadline_of_the_start(pids: list[int]) -> None:
    with worker(fakes.adapter("HangsInDescribe"), deadline=0.1, start_deadline=1.0) as w, pytest.raises(Hung):
        w.describe()


def test_the_deadline_of_the_start_holds_until_a_trace_has_begun(pids: list[int]) -> None:
    with worker(fakes.adapter("SlowToOpen"), deadline=0.2) as w:
        w.describe()
        session = RemoteSession(w)
        assert session.begin("growing", CONFIG).result == "ok"
        assert session.begin("growing", CONFIG).result == "hang"
        assert session.begin("growing", CONFIG).result == "ok"
