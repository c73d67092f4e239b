"""Whatever a worker does, the parent tells it apart, in time, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvconform.worker.client import (
    Crashed,
    Hung,
    OutOfMemory,
    ProtocolBroken,
    Worker,
    WorkerFailure,
    python_worker,
)
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Pair
from kvspec.errors import BadInput, CannotRun
from kvspec.geometry import Array, Config
from kvspec.rows import SerialBook
from kvspec.session.step import Inputs, Step
from support import fakes
from support.waiting import soon

CONFIG = Config()
NOTHING = {"op": "free"}


@pytest.fixture
def pids(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The workers that were started; none may be left when the test ends, nor anyone of their group."""
    started: list[int] = []
    start = Worker._start

    def noted(worker: Worker) -> Any:
        child = start(worker)
        started.append(child.pid)
        return child

    monkeypatch.setattr(Worker, "_start", noted)
    yield started
    assert started
    assert [pid for pid in started if alive(pid)] == []
    assert soon(lambda: not any(group_is_left(pid) for pid in started))


def alive(pid: int) -> bool:
    """Whether there is such a process, be it a zombie of ours."""
    return Path(f"/proc/{pid}").exists()


def running(pid: int) -> bool:
    """Whether it runs: an orphan that was killed is a zombie until init reaps it."""
    return (status(pid) or "Z")[0] != "Z"


def group_is_left(group: int) -> bool:
    members = [s for p in Path("/proc").iterdir() if p.name.isdigit() and (s := status(int(p.name)))]
    return any(s[2] == str(group) and s[0] != "Z" for s in members)


def status(pid: int) -> list[str] | None:
    """State, parent, group and so on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def worker(argv: list[str], **limits: Any) -> Worker:
    return Worker(argv, env=fakes.environment(), **{"deadline": 5.0, "start_deadline": 20.0, **limits})


def failure(w: Worker, head: dict[str, Any] = NOTHING, tensors: Mapping[str, Array] | None = None) -> WorkerFailure:
    with w, pytest.raises(WorkerFailure) as e:
        w.ask(head, tensors)
    assert type(e.value).verdict and str(e.value).startswith(e.value.message)
    return e.value


def append(session: RemoteSession, n: int = 2, config: Config = CONFIG) -> Step:
    rows = Pair(*(np.ones(config.shape(k, n), np.float16) for k in "kv"))
    return session.do({"op": "append", "n": n}, Inputs(rows))


def first_append(name: str, **limits: Any) -> Step:
    """The step of a first append to this fake adapter."""
    with worker(fakes.adapter(name), **limits) as w:
        session = RemoteSession(w, ["state", "history", "offset"])
        assert session.begin("growing", CONFIG).result == "ok"
        return append(session)


PROTOCOL = {
    "answers_out_of_order": "answer to question 2; the question was 1",
    "answers_without_id": "answer to question None",
    "answers_twice": "two answers",
    "wrong_byte_count": "1 bytes of a header came behind it",
    "huge_header": "a header of more than",
    "huge_tensor": "more than the 268435456 bytes",
    "not_json": "not a JSON header: b'Hello! I am",
    "deep_json": "not a JSON header",
    "endless_output": "a header of more than",
    "closes_its_output": "closed its standard output, and goes on running",
}


@pytest.mark.parametrize(("name", "says"), PROTOCOL.items(), ids=PROTOCOL)
def test_what_is_no_answer_breaks_the_protocol(name: str, says: str, pids: list[int]) -> None:
    start = time.monotonic()
    e = failure(worker(fakes.process(name)))
    assert isinstance(e, ProtocolBroken) and says in e.message
    assert time.monotonic() - start < 30


def test_an_answer_to_half_a_question_breaks_the_protocol(pids: list[int]) -> None:
    large = {"keys": np.zeros(4 << 20, np.float32)}
    e = failure(worker(fakes.process("answers_before_it_reads")), NOTHING, large)
    assert isinstance(e, ProtocolBroken) and "before the question was read" in e.message


def test_a_second_answer_that_comes_late_breaks_the_protocol(pids: list[int]) -> None:
    with worker(fakes.process("answers_twice_slowly")) as w:
        assert w.ask(NOTHING) == ({"result": "ok"}, {})
        time.sleep(0.2)
        with pytest.raises(ProtocolBroken, match=r"an answer to question 1; the question was 2|two answers"):
            w.ask(NOTHING)


def test_answers_without_end_are_caught_at_the_next_question(pids: list[int]) -> None:
    with worker(fakes.process("endless_answers")) as w, pytest.raises(ProtocolBroken, match="answer"):
        [w.ask(NOTHING) for _ in range(2)]


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
    assert "about to crash" in step.message and "fakes.py" in step.message


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


@pytest.mark.parametrize("name", ["EatsMemory", "EatsMemoryAndAnswers"])
def test_memory_over_the_limit_is_seen_while_waiting_and_between_answers(name: str, pids: list[int]) -> None:
    with worker(fakes.adapter(name), memory_limit=300 << 20) as w:
        session = RemoteSession(w, ["state", "history", "offset"])
        session.begin("growing", CONFIG)
        results = [append(session).result for _ in range(100)]
        assert "oom" in results and set(results) <= {"ok", "oom", "absent"}
        assert 300 << 20 < w.peak_rss < 3000 << 20


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


@pytest.mark.parametrize("name", ["StartsAChild", "StartsAChildApart"])
def test_what_a_worker_started_is_gone_when_it_is_closed(name: str, pids: list[int]) -> None:
    with worker(fakes.adapter(name)) as w:
        child = w.describe().details["child"]
        assert running(child)
    assert soon(lambda: not running(child))


def test_after_a_failure_the_rest_of_the_trace_is_absent_and_the_next_one_starts_afresh(pids: list[int]) -> None:
    with worker(fakes.adapter("ExitsQuietly")) as w:
        session = RemoteSession(w)
        for trace in (1, 2):
            assert session.begin("growing", CONFIG).result == "ok"
            assert append(session).result == "crash"
            assert (append(session).result, session.do({"op": "view"}).result) == ("absent", "absent")
            assert w.starts == trace
    assert len(set(pids)) == 2


def test_an_answer_that_the_protocol_does_not_name_ends_the_trace(pids: list[int]) -> None:
    with worker(fakes.adapter("Honest")) as w:
        session = RemoteSession(w)
        session.begin("growing", CONFIG)
        said = {"result": "ok", "values": {"offset": True}}
        receive, w.receive = w.receive, lambda: (said, {})  # type: ignore[method-assign]
        step = session.do({"op": "free"})
        assert (step.result, step.message) == ("protocol", "offset must be a whole number or null, is True")
        w.receive = receive  # type: ignore[method-assign]
        assert session.do({"op": "free"}).result == "absent"
        assert session.begin("growing", CONFIG).result == "ok"
    assert len(pids) == 2


def test_questions_sent_ahead_are_answered_in_order() -> None:
    with worker(fakes.adapter("Honest")) as w:
        w.ask({"op": "begin", "kind": "growing", "config": CONFIG.to_json(), "observe": []})
        for to in (9, 0, 9):
            w.send({"op": "rewind", "to": to})
        assert [w.receive()[0]["result"] for _ in range(3)] == ["refused", "ok", "refused"]


IN_PAIRS = """
import os
from kvspec.wire.messages import Decoder
decoder, waiting = Decoder(), []
while data := os.read(0, 1 << 18):
    for head, _ in decoder.feed(data):
        waiting.append(b'{"id": %d, "result": "ok"}\\n' % head["id"])
        if head["op"] != "append":
            os.write(1, b"".join(waiting))
            waiting.clear()
"""
"""An engine that answers an append together with the next question."""


def test_questions_behind_one_that_no_pipe_holds_are_written_and_those_after_it() -> None:
    with Worker([sys.executable, "-c", IN_PAIRS], deadline=5, env=fakes.environment()) as w:
        rows = dict.fromkeys(("keys", "values"), np.zeros((1, 1, 1 << 18, 8), np.float16))
        for _ in range(3):
            w.ask({"op": "begin"})
            w.send({"op": "append", "n": 1 << 18}, rows)
            w.send({"op": "ask", "to": 0})
            assert [w.receive()[0]["result"] for _ in range(2)] == ["ok", "ok"]


def test_what_was_asked_behind_a_failure_is_absent(pids: list[int]) -> None:
    with worker(fakes.adapter("DiesBySignal")) as w:
        session = RemoteSession(w)
        session.begin("growing", CONFIG)
        rows = Pair(*SerialBook().rows({"op": "append", "n": 1}, CONFIG, 1))
        first = session.later({"op": "append", "n": 1}, Inputs(rows))
        waiting = [first, session.later({"op": "free"}), session.later({"op": "free"})]
        assert [answer().result for answer in waiting] == ["crash", "absent", "absent"]
        assert session.begin("growing", CONFIG).result == "ok"


def test_ctrl_c_leaves_no_worker(pids: list[int]) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with worker(fakes.process("never_reads")) as w:
        threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,)).start()
        with pytest.raises(KeyboardInterrupt):
            w.ask(NOTHING)
        assert not alive(pids[0])
    signal.signal(signal.SIGINT, before)


def test_a_worker_that_is_forgotten_is_killed(pids: list[int]) -> None:
    w = worker(fakes.adapter("Honest"))
    w.describe()
    del w
    assert not alive(pids[0])


def test_a_question_that_cannot_be_sent_leaves_the_worker_as_it_was(pids: list[int]) -> None:
    with worker(fakes.adapter("Honest")) as w:
        RemoteSession(w).begin("growing", CONFIG)
        with pytest.raises(BadInput):
            w.ask(NOTHING, {"keys": np.zeros(3)})
        assert w.ask(NOTHING)[0]["result"] == "ok" and w.starts == 1


def test_a_command_that_is_not_there_is_bad_input() -> None:
    with worker(["./no-such-engine"]) as w, pytest.raises(BadInput, match=r"cannot start \./no-such-engine"):
        w.ask(NOTHING)


DESCRIPTIONS: dict[str, tuple[type[Exception], str]] = {
    "support.fakes:DescribesNothing": (BadInput, "support.fakes:DescribesNothing: describe: name must be"),
    "support.fakes:DescribesUnknownChapter": (BadInput, "unknown chapter 'spiral'"),
    "support.fakes:DescribesWithArrays": (BadInput, "not JSON"),
    "support.fakes:NeedsADevice": (CannotRun, "there is no such device here; install one"),
    "support.fakes:NoSuchThing": (BadInput, "has no attribute 'NoSuchThing'"),
    "referense": (BadInput, "did you mean reference?"),
}


@pytest.mark.parametrize(("name", "wanted"), DESCRIPTIONS.items(), ids=DESCRIPTIONS)
def test_an_adapter_that_cannot_be_used_says_why(name: str, wanted: tuple[Any, str], pids: list[int]) -> None:
    with worker([*fakes.adapter("")[:-1], name]) as w, pytest.raises(wanted[0]) as e:
        w.describe()
    assert wanted[1] in str(e.value) and "\n" not in str(e.value)


@pytest.mark.parametrize("answer", [{}, {"result": "fine"}, {"result": "error", "message": 3}, {"result": []}])
def test_a_description_of_any_other_form_breaks_the_protocol(answer: dict[str, Any]) -> None:
    with worker([]) as w:
        w.ask = lambda *_: (answer, {})  # type: ignore[method-assign]
        with pytest.raises(ProtocolBroken):
            w.describe()


def test_the_verdicts_are_those_of_the_record() -> None:
    kinds = (Crashed, Hung, OutOfMemory, ProtocolBroken)
    assert [k.verdict for k in kinds] == ["CRASH", "HANG", "OOM", "PROTOCOL"]


def test_no_file_of_the_working_folder_shadows_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("random", "numpy", "msgspec"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')")
    (tmp_path / "engine_of_mine.py").write_text("from kvadapters.reference import Reference as Mine")
    monkeypatch.chdir(tmp_path)
    with Worker(python_worker("engine_of_mine:Mine")) as worker:
        assert worker.describe().name == "reference"
