"""A worker that ends is a crash with its status or signal; what follows it in the trace is absent."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from kvconform.worker.client import Crashed, Hung, OutOfMemory, ProtocolBroken
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Pair
from kvspec.rows.book import SerialBook
from kvspec.session.step import Inputs
from support import fakes
from support.running.workers import CONFIG, append, failure, first_append, worker

CRASHES = {
    "dies_before_it_reads": ("exited with status 7", "no licence found"),
    "dies_in_mid_tensor": ("exited with status 3 in the middle of an answer, 12 of 16 bytes of tensors", ""),
    "dies_and_leaves_its_output_open": ("exited with status 5", ""),
}


@pytest.mark.parametrize(("name", "says"), CRASHES.items(), ids=CRASHES)
def test_an_end_is_a_crash_with_status_and_last_words(name: str, says: tuple[str, str], pids: list[int]) -> None:
    start = time.monotonic()
    e = failure(worker(fakes.process(name)))
    assert isinstance(e, Crashed) and says[0] in e.message and says[1] in e.stderr
    assert time.monotonic() - start < 30


def test_a_crash_in_native_code_is_named_with_its_place(pids: list[int]) -> None:
    step = first_append("DiesBySignal")
    assert step.result == "crash"
    assert "killed by SIGSEGV" in step.message
    assert "about to crash" in step.message and "lies.py" in step.message


def test_a_quiet_exit_is_a_crash(pids: list[int]) -> None:
    step = first_append("ExitsQuietly")
    assert (step.result, step.message) == ("crash", "exited with status 0")


def test_a_kill_from_outside_is_a_crash_that_names_the_signal(pids: list[int]) -> None:
    with worker(fakes.adapter("Hangs")) as w:
        session = RemoteSession(w)
        session.begin("growing", CONFIG)
        threading.Timer(0.1, os.kill, (pids[0], signal.SIGKILL)).start()
        step = append(session)
    assert step.result == "crash" and "killed by SIGKILL (not by the harness" in step.message


def test_after_a_failure_the_rest_of_the_trace_is_absent_and_the_next_one_starts_afresh(pids: list[int]) -> None:
    with worker(fakes.adapter("ExitsQuietly")) as w:
        session = RemoteSession(w)
        for trace in (1, 2):
            assert session.begin("growing", CONFIG).result == "ok"
            assert append(session).result == "crash"
            assert (append(session).result, session.do({"op": "view"}).result) == ("absent", "absent")
            assert w.starts == trace
    assert len(set(pids)) == 2


def test_what_was_asked_behind_a_failure_is_absent(pids: list[int]) -> None:
    with worker(fakes.adapter("DiesBySignal")) as w:
        session = RemoteSession(w)
        session.begin("growing", CONFIG)
        rows = Pair(*SerialBook().rows({"op": "append", "n": 1}, CONFIG, 1))
        first = session.later({"op": "append", "n": 1}, Inputs(rows))
        waiting = [first, session.later({"op": "free"}), session.later({"op": "free"})]
        assert [answer().result for answer in waiting] == ["crash", "absent", "absent"]
        assert session.begin("growing", CONFIG).result == "ok"


def test_the_verdicts_are_those_of_the_record() -> None:
    kinds = (Crashed, Hung, OutOfMemory, ProtocolBroken)
    assert [k.verdict for k in kinds] == ["CRASH", "HANG", "OOM", "PROTOCOL"]
