"""A run in several processes tells what one process tells, and outlives the processes that judge."""

from __future__ import annotations

import json
import os
import signal
import time
import xml.etree.ElementTree as ElementTree
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from conformance.commands.test_interrupted import Running
from kvconform.commands.run import FEWEST
from kvconform.worker import memory
from kvconform.worker.start import SUPERVISED
from kvspec.reading.clauses import examples_of, index
from support.running import judging
from support.running.command_line import kvconform
from support.running.waiting import soon
from support.slow import one_in

OWN = ("started", "seconds", "memory")
"""What two runs of the same do not share."""

SOME = ("--chapter", "copy", "--traces", "5")


def _record(folder: Path, name: str, processes: int) -> dict[str, Any]:
    how = ("--quick", "--processes", str(processes), "--report", folder / str(processes), "--format", "json")
    done = kvconform("run", name, *SOME, *how)
    assert done.returncode in (0, 1), done.stderr[-500:]
    found: dict[str, Any] = json.loads((folder / str(processes) / "record.json").read_text())
    return {name: said for name, said in found.items() if name not in OWN}


@pytest.mark.parametrize("name", one_in(2, ["reference", "kvworkshop.fakes:ClaimsEverything"]))
def test_a_record_tells_the_same_however_many_processes_judge(name: str, tmp_path: Path) -> None:
    assert _record(tmp_path, name, 3) == _record(tmp_path, name, 1)
    one, three = (ElementTree.parse(tmp_path / n / "junit.xml").iter("testcase") for n in "13")
    assert sorted(c.get("name", "") for c in one) == sorted(c.get("name", "") for c in three)


def test_few_checks_are_judged_by_the_run_itself(tmp_path: Path) -> None:
    """One clause has fewer checks than would be worth another worker."""
    running = Running(tmp_path, "support.fakes.endings:HangsOnRewind", "--clause", "GROW-5", "--processes", "8")
    one = 2 + SUPERVISED  # the run, its worker, and who stands between them
    looks = deque[int](maxlen=25)

    def alone() -> bool:
        """For half a second: others would start one after another."""
        looks.append(len(judging.workers_of(str(tmp_path))))
        return list(looks) == [one] * 25

    seen = soon(alone)
    _, _, err = running.ended_by(signal.SIGTERM)
    assert seen and FEWEST > 3, f"{looks} processes; {err[-500:]}"


def test_a_process_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """What it judged at that moment is judged again by the one that takes its place."""
    running = Running(tmp_path, "reference", *SOME, "--processes", "2")
    examples = sum(1 for _ in examples_of("copy"))
    assert soon(lambda: running.judged() >= examples)  # each is at a longer task from then on
    judges = [pid for pid in memory.family(running.process.pid)[1:] if _forked(pid)]
    assert len(judges) == 2
    os.kill(judges[0], signal.SIGKILL)
    out, err = running.process.communicate(timeout=120)
    seen = json.loads(out)
    assert (running.process.returncode, seen["exit_status"], seen["problems"]) == (0, 0, []), err[-500:]
    assert set(seen["summary"]) == {"PASS"}
    assert soon(lambda: not judging.workers_of(str(tmp_path)))


def _forked(pid: int) -> bool:
    """A process that judges has the command line of its run."""
    return "kvadapters.serve" not in Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.slow
def test_an_interruption_keeps_what_each_process_has_judged_of_its_check(tmp_path: Path) -> None:
    """The journal then ends with the covers that were under way, of which a part was judged."""
    running = Running(tmp_path, "reference", "--chapter", "snapshot", "--processes", "2")
    examples = sum(len(c.examples) for c in index().values() if c.chapter == "snapshot")
    assert soon(lambda: running.judged() >= examples - 1)
    time.sleep(2.0)
    before = running.judged()
    status, _, err = running.ended_by(signal.SIGINT)
    assert status == 130 and "Traceback" not in err, err
    tests = [e for e in running.journal() if e["event"] == "judged"]
    assert len({e["test"] for e in tests}) == len(tests) > before
    under_way = tests[before:]  # one that has only just begun has judged nothing yet
    assert any(e["tally"]["agreed"] for e in under_way) and "/cover/" in under_way[-1]["test"]
    assert json.loads((tmp_path / "record.json").read_text())["partial"]
    assert soon(lambda: not judging.workers_of(str(tmp_path)))


def test_the_number_of_processes_is_one_or_more() -> None:
    done = kvconform("run", "reference", "--processes", "0")
    assert done.returncode == 2 and "it must be 1 or more" in done.stderr
