"""A run that is cut short keeps what it judged, says so, and leaves no process behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from kvconform.runner.journal import Journal
from support.running import command_line, judging
from support.running.command_line import kvconform
from support.running.waiting import soon
from support.slow import one_in


def _listens() -> None:
    """Ctrl-C reaches the run even where these tests were started in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Running:
    """`kvconform run` in the background; whatever it starts carries the folder's name in its environment."""

    def __init__(self, folder: Path, name: str, *arguments: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            command_line.command("run", name, "--report", folder, "--format", "json", *arguments),
            env=judging.fakes.environment() | {"KVCONFORM_TEST": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_listens,
        )

    def journal(self) -> list[dict[str, Any]]:
        file = self.folder / "journal.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def started(self) -> bool:
        """Whether the adapter has answered."""
        return (self.folder / "journal.jsonl").is_file() and bool(self.journal())

    def judged(self) -> int:
        """How many checks have ended."""
        return sum(e["event"] == "judged" for e in self.journal()) if self.started() else 0

    def ended_by(self, number: signal.Signals) -> tuple[int, str, str]:
        """Send a signal to the run alone; give its status and what it wrote."""
        family = len(judging.workers_of(str(self.folder)))
        os.kill(self.process.pid, number)
        out, err = self.process.communicate(timeout=20)
        assert family >= 2, f"the run and its worker, or workers: {family}; {err[-500:]}"
        return self.process.returncode, out, err


@pytest.mark.parametrize("number", one_in(2, [signal.SIGINT, signal.SIGTERM]))
def test_an_interrupt_in_mid_run_keeps_what_was_judged(number: signal.Signals, tmp_path: Path) -> None:
    running = Running(tmp_path, "reference")
    assert soon(lambda: running.judged() >= 5)
    status, out, err = running.ended_by(number)
    assert status == 130 and "Traceback" not in err, err
    seen = json.loads((tmp_path / "record.json").read_text())
    assert (seen["partial"], seen["partial_reason"], seen["exit_status"]) == (True, "interrupted", 3)
    assert json.loads(out) == seen and not seen["failures"]
    assert seen["summary"]["PASS"] >= 1 and seen["summary"]["NOT_RUN"] >= 1
    assert all(c["reason"] for c in seen["clauses"] if c["verdict"] == "NOT_RUN")
    assert soon(lambda: not judging.workers_of(str(tmp_path)))
    assert [e["event"] for e in running.journal()][-1] == "end" and (tmp_path / "report.html").is_file()


def test_what_was_judged_is_on_disk_before_the_next_test_begins(tmp_path: Path) -> None:
    written = Journal(tmp_path)
    for event in ("start", "judged"):
        written.write(event)
        assert json.loads((tmp_path / "journal.jsonl").read_text().splitlines()[-1]) == {"event": event}
    written.close()


def test_an_interrupt_while_an_adapter_hangs_is_heard_at_once(tmp_path: Path) -> None:
    running = Running(tmp_path, "support.fakes.endings:HangsOnRewind", "--clause", "GROW-5", "--deadline", "300")
    assert soon(running.started)
    time.sleep(1.0)
    start = time.monotonic()
    status, _, err = running.ended_by(signal.SIGINT)
    assert status == 130 and time.monotonic() - start < 30 and "Traceback" not in err, err
    assert json.loads((tmp_path / "record.json").read_text())["partial"]
    assert soon(lambda: not judging.workers_of(str(tmp_path)))


def test_an_interrupt_before_the_adapter_answers_leaves_nothing(tmp_path: Path) -> None:
    running = Running(tmp_path / "report", "support.fakes.lies:HangsInDescribe")
    assert soon(lambda: len(judging.workers_of(str(tmp_path))) >= 2)
    time.sleep(0.5)
    status, out, err = running.ended_by(signal.SIGINT)
    assert (status, out) == (130, "") and err.endswith("kvconform: interrupted\n") and "Traceback" not in err
    assert soon(lambda: not judging.workers_of(str(tmp_path)))


def test_the_journal_of_a_run_that_was_killed_is_reported_as_partial(tmp_path: Path) -> None:
    running = Running(tmp_path, "reference")
    assert soon(lambda: running.judged() >= 5)
    status, _, _ = running.ended_by(signal.SIGKILL)
    assert status == -signal.SIGKILL and not (tmp_path / "record.json").exists()
    assert soon(lambda: not judging.workers_of(str(tmp_path))), "a worker ends when its questions do"
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"event": "judged", "test": "half a li')
    done = kvconform("report", tmp_path / "journal.jsonl", "--format", "json")
    seen = json.loads(done.stdout)
    assert done.returncode == 0 and seen["partial"] and "cut short" in seen["partial_reason"]
    assert seen["summary"]["PASS"] >= 1 and seen["summary"]["NOT_RUN"] >= 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not the journal of a run"),
        ("hello\n", "not the journal of a run"),
        ("[1, 2]\n", "not the journal of a run"),
        ('{"event": "judged"}\n', "not the journal of a run"),
        ('{"event": "start"}\n', "not the journal of a run"),
        ("[" * 100_000, "not the journal of a run"),
    ],
)
def test_a_journal_that_is_none_is_refused_in_words(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "j.jsonl"
    file.write_text(text)
    done = kvconform("report", file)
    assert (done.returncode, done.stdout) == (2, "") and words in done.stderr, done.stderr[-500:]
