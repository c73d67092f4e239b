"""Nothing that a worker started outlives it or the harness, on Linux, whatever session it fled to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from hostile import descendants
from kvconform.worker.client import Worker, WorkerFailure
from support import fakes
from support.running import judging
from support.running.waiting import soon

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(sys.platform != "linux", reason="nobody adopts orphans here; spec/WIRE.md says so"),
]

HARNESS = """
import sys, time
from kvconform.worker.client import Worker
worker = Worker(sys.argv[1:])
worker.ask({"op": "free"})
worker.send({"op": "free"})
print("asked", flush=True)
time.sleep(600)
"""

POOL = """
import time
from kvconform.runner.pool import opened
with opened(2) as pool:
    tasks = [pool.submit(time.sleep, 600) for _ in range(2)]
    while not all(task.running() for task in tasks):
        time.sleep(0.05)
    print("asked", flush=True)
    time.sleep(600)
"""

CASES = {
    "a child, at a clean end": ("child", "waits"),
    "a child in another session, at a crash": ("child_apart", "exits"),
    "a daemon, at a clean end": ("orphan", "waits"),
    "a daemon, when the worker exits": ("orphan", "exits"),
    "a daemon, when the worker dies by a signal": ("orphan", "dies"),
    "a daemon, when the worker hangs": ("orphan", "hangs"),
    "a daemon, when the worker babbles": ("orphan", "babbles"),
    "a daemon, when the worker kills its own group": ("orphan", "kills_its_group"),
    "a daemon that ignores every signal": ("stubborn_orphan", "waits"),
    "a daemon that is stopped": ("stopped_orphan", "waits"),
    "a daemon that becomes another process all the time": ("restless_orphan", "waits"),
    "forty daemons": ("many_orphans", "exits"),
    "a daemon of a daemon of a daemon": ("a_line_of_orphans", "exits"),
    "a daemon that writes to the worker's pipes": ("orphan_with_its_pipes", "exits"),
    "a worker that kills its parent and hangs": ("child", "kills_its_parent"),
    "a worker that stops its parent and hangs": ("child", "stops_its_parent"),
}
"""What is left, and how the worker goes on."""


def command(leaves: str, ends: str) -> list[str]:
    return [sys.executable, descendants.__file__, leaves, ends]


def gone(folder: Path) -> bool:
    """Whether within a few seconds no process is left that carries this folder's name in its environment."""
    return soon(lambda: not judging.workers_of(str(folder)))


def environment(folder: Path) -> dict[str, str]:
    return fakes.environment() | {"KVCONFORM_TEST": str(folder)}


@pytest.mark.parametrize(("leaves", "ends"), CASES.values(), ids=CASES)
@pytest.mark.must("all are gone")
def test_what_a_worker_leaves(leaves: str, ends: str, tmp_path: Path) -> None:
    with Worker(command(leaves, ends), env=environment(tmp_path), start_deadline=20.0) as worker:
        assert worker.ask({"op": "free"})[0]["result"] == "ok"
        assert len(judging.workers_of(str(tmp_path))) >= 2
        worker.start_deadline = 0.5
        if ends != "waits":
            with suppress(WorkerFailure):
                worker.ask({"op": "free"})
            assert gone(tmp_path), "at the failure, before the worker is closed"
    assert gone(tmp_path)


@pytest.mark.must("OOM")
def test_a_daemon_that_eats_the_memory_of_the_worker(tmp_path: Path) -> None:
    with Worker(command("greedy_orphan", "hangs"), env=environment(tmp_path), memory_limit=150 << 20) as worker:
        with pytest.raises(WorkerFailure) as e:
            [worker.ask({"op": "free"}) for _ in range(2)]
        assert e.value.verdict == "OOM" and gone(tmp_path)


@pytest.mark.parametrize("leaves", ["child", "child_apart", "orphan", "stubborn_orphan", "restless_orphan"])
@pytest.mark.must("all are gone")
def test_a_harness_that_is_killed_while_its_worker_hangs_and_has_left(leaves: str, tmp_path: Path) -> None:
    killed(tmp_path, HARNESS, *command(leaves, "hangs"))


@pytest.mark.must("all are gone")
def test_a_pool_that_is_killed_while_its_tasks_hang(tmp_path: Path) -> None:
    killed(tmp_path, POOL)


def killed(folder: Path, script: str, *arguments: str) -> None:
    """Kill a harness once it says that it has asked: nothing is left."""
    said = folder / "said"
    with said.open("wb") as file:
        harness = subprocess.Popen([sys.executable, "-c", script, *arguments], env=environment(folder), stdout=file)
    assert soon(lambda: said.read_bytes() == b"asked\n") and len(judging.workers_of(str(folder))) >= 3
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()
    assert gone(folder)
