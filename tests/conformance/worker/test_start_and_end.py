"""A worker is started, or says why it cannot be, and leaves no process behind."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvconform.worker import start
from kvconform.worker.client import Worker, python_worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.errors import BadInput, CannotRun
from support import fakes
from support.running.waiting import heeding_interrupts, soon
from support.running.workers import CONFIG, NOTHING, alive, running, worker


@pytest.mark.parametrize("name", ["StartsAChild", "StartsAChildApart"])
def test_what_a_worker_started_is_gone_when_it_is_closed(name: str, pids: list[int]) -> None:
    with worker(fakes.adapter(name)) as w:
        child = w.describe().details["child"]
        assert running(child)
    assert soon(lambda: not running(child))


def test_a_temporary_folder_is_gone_when_its_worker_is_killed(pids: list[int]) -> None:
    with worker(fakes.adapter("LeavesAFolder")) as w:
        folder = Path(w.describe().details["folder"])
        assert folder.is_dir()
    assert not folder.exists()


def test_ctrl_c_leaves_no_worker(pids: list[int]) -> None:
    def interrupt() -> None:
        assert soon(lambda: pids)
        signal.raise_signal(signal.SIGINT)

    with heeding_interrupts(), worker(fakes.process("never_reads")) as w:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            w.ask(NOTHING)
        assert not alive(pids[0])


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


def test_answers_that_nobody_waited_for_are_not_those_of_the_next_trace(pids: list[int]) -> None:
    with worker(fakes.adapter("Honest")) as w:
        left = RemoteSession(w)
        left.begin("growing", CONFIG)
        left.later({"op": "rewind", "cache": "A", "to": -1})  # an error of the harness ends the trace here
        step = RemoteSession(w).begin("growing", CONFIG)
        assert step.result == "ok" and step.values["offset"] == 0 and w.starts == 2


def test_a_command_that_is_not_there_is_bad_input() -> None:
    with worker(["./no-such-engine"]) as w, pytest.raises(BadInput, match=r"cannot start \./no-such-engine"):
        w.ask(NOTHING)


@pytest.mark.parametrize("words", ["-No such file\n", "-No such file\n123 ", "123 -No such file\n"])
def test_why_it_cannot_be_started_is_told_alone_whether_before_its_pid_or_behind_it(words: str) -> None:
    with pytest.raises(OSError, match=r"^No such file$"):
        start.told_pid(words)


def test_a_supervisor_that_ends_before_it_tells_a_pid_is_an_error() -> None:
    assert start.told_pid("123 ") == 123
    with pytest.raises(OSError, match="its supervisor ended"):
        start.told_pid("")


DESCRIPTIONS: dict[str, tuple[type[Exception], str]] = {
    "support.fakes.lies:DescribesNothing": (
        BadInput,
        "support.fakes.lies:DescribesNothing: describe: name must be",
    ),
    "support.fakes.lies:DescribesUnknownChapter": (BadInput, "unknown chapter 'spiral'"),
    "support.fakes.lies:DescribesWithArrays": (BadInput, "not JSON"),
    "support.fakes.lies:NeedsADevice": (CannotRun, "there is no such device here; install one"),
    "support.fakes.lies:NoSuchThing": (BadInput, "has no attribute 'NoSuchThing'"),
    "referense": (BadInput, "did you mean reference?"),
}


@pytest.mark.parametrize(("name", "wanted"), DESCRIPTIONS.items(), ids=DESCRIPTIONS)
def test_an_adapter_that_cannot_be_used_says_why(name: str, wanted: tuple[Any, str], pids: list[int]) -> None:
    with worker([*fakes.adapter("")[:-1], name]) as w, pytest.raises(wanted[0]) as e:
        w.describe()
    assert wanted[1] in str(e.value) and "\n" not in str(e.value)


def test_no_file_of_the_working_folder_shadows_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("random", "numpy", "msgspec"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')")
    (tmp_path / "engine_of_mine.py").write_text("from kvadapters.reference import Reference as Mine")
    monkeypatch.chdir(tmp_path)
    with Worker(python_worker("engine_of_mine:Mine")) as worker:
        assert worker.describe().name == "reference"
