"""Signals at bad moments: a command ends with 130, one line and no traceback, and leaves no process behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support import fakes
from support.running import command_line, judging
from support.running.waiting import soon

pytestmark = pytest.mark.hostile

REFERENCE = ("run", "reference", "--processes", "1")
POOL = ("run", "reference", "--processes", "2")
HANGING = ("run", "support.fakes.lies:HangsInDescribe")
SOAK = ("soak", "reference", "--processes", "2")


def listening() -> None:
    """These tests may run where the terminal's signals are ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Command:
    """A command in the background. Whatever it starts carries the folder's name in its environment."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        report = ("--report", str(folder / "report")) if words[0] == "run" else ("--out", str(folder / "report"))
        self.process = subprocess.Popen(
            command_line.command(*words, *report),
            env=fakes.environment() | {"KVCONFORM_TEST": str(folder)},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=listening,
        )

    def workers(self) -> list[int]:
        """The processes that it started."""
        return [pid for pid in judging.workers_of(str(self.folder)) if pid != self.process.pid]

    def judged(self) -> bool:
        """Whether something is judged already."""
        journal = self.folder / "report" / "journal.jsonl"
        return journal.is_file() and journal.read_text().count('"judged"') >= 3

    def ended(self) -> tuple[int, str]:
        """Its status and what it wrote to standard error, once it has ended."""
        _, err = self.process.communicate(timeout=40)
        return self.process.returncode, err


MOMENTS: dict[str, tuple[tuple[str, ...], str, list[signal.Signals]]] = {
    "Ctrl-C before Python has started": (REFERENCE, "at once", [signal.SIGINT]),
    "Ctrl-C while modules are imported": (REFERENCE, "importing", [signal.SIGINT]),
    "Ctrl-C while an adapter hangs in describe": (HANGING, "worker", [signal.SIGINT]),
    "the terminal is closed while an adapter hangs in describe": (HANGING, "worker", [signal.SIGHUP]),
    "the terminal is closed in the middle": (REFERENCE, "judged", [signal.SIGHUP]),
    "a shutdown in the middle": (REFERENCE, "judged", [signal.SIGTERM]),
    "three times Ctrl-C": (REFERENCE, "judged", [signal.SIGINT] * 3),
    "one signal after another": (REFERENCE, "judged", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM]),
    "three times Ctrl-C in a pool": (POOL, "judged", [signal.SIGINT] * 3),
    "a stop, a Ctrl-C, and on it goes": (REFERENCE, "judged", [signal.SIGSTOP, signal.SIGINT, signal.SIGCONT]),
    "Ctrl-C in a soak": (SOAK, "worker", [signal.SIGINT]),
}
"""A command, when it is hit, and by what."""


@pytest.mark.must("130, no traceback, all are gone")
@pytest.mark.parametrize(("words", "when", "numbers"), MOMENTS.values(), ids=MOMENTS)
def test_it_is(words: tuple[str, ...], when: str, numbers: list[signal.Signals], tmp_path: Path) -> None:
    command = Command(tmp_path, *words)
    wait_until(command, when)
    for number in numbers:
        os.kill(command.process.pid, number)
        time.sleep(0.05)
    status, err = command.ended()
    assert status == (-signal.SIGINT if when == "at once" else 130), err
    assert when in ("at once", "importing") or "Traceback" not in err, err
    assert soon(lambda: not judging.workers_of(str(tmp_path)))
    record = tmp_path / "report" / "record.json"
    assert when != "judged" or json.loads(record.read_text())["partial"]


@pytest.mark.must("130, no traceback")
def test_a_ctrl_c_that_is_held_down(tmp_path: Path) -> None:
    """Also while Python ends: a signal in its last moments would be the status."""
    command = Command(tmp_path, *REFERENCE)
    wait_until(command, "judged")
    while command.process.poll() is None:
        command.process.send_signal(signal.SIGINT)
        time.sleep(0.0005)
    status, err = command.ended()
    assert (status, "Traceback" in err) == (130, False), err


def wait_until(command: Command, when: str) -> None:
    match when:
        case "importing":
            assert command.process.stderr is not None
            assert "judging" in command.process.stderr.readline()
        case "worker":
            assert soon(lambda: len(command.workers()) >= 2)
        case "judged":
            assert soon(command.judged)


@pytest.mark.must("the run goes on")
@pytest.mark.parametrize("number", [signal.SIGCONT, signal.SIGWINCH, signal.SIGURG, signal.SIGCHLD])
def test_a_signal_that_means_nothing(number: signal.Signals, tmp_path: Path) -> None:
    command = Command(tmp_path, "run", "reference", "--chapter", "copy", "--quick", "--processes", "1")
    assert soon(command.workers)
    for _ in range(5):
        os.kill(command.process.pid, number)
        time.sleep(0.05)
    status, err = command.ended()
    assert status == 0 and "Traceback" not in err, err


@pytest.mark.must("the check is judged again")
def test_a_process_of_a_pool_that_is_killed(tmp_path: Path) -> None:
    command = Command(
        tmp_path, "run", "reference", "--chapter", "copy", "--chapter", "mask", "--quick", "--processes", "2"
    )
    assert soon(command.judged)
    children = [pid for pid in command.workers() if parent(pid) == command.process.pid]
    os.kill(children[0], signal.SIGKILL)
    status, err = command.ended()
    assert status == 0 and "Traceback" not in err, err
    assert soon(lambda: not judging.workers_of(str(tmp_path)))


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
