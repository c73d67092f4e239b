"""A pool: what dies, hangs or raises costs its task alone, and nothing is left running when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from kvconform.runner.pool import opened
from kvconform.worker import tasks
from kvconform.worker.tasks import Pool, ProcessDied, completed
from support.running.deaths import die
from support.running.waiting import heeding_interrupts, soon

ENDS = {
    "exits": ProcessDied,
    "faults": ProcessDied,
    "hangs": TimeoutError,
    "eats": MemoryError,
    "raises": ValueError,
}
LIMIT = 8 << 30


def does(name: str) -> str:
    """What its name says."""
    taken = die(name, LIMIT)
    return str(taken) if taken else name.upper()


def sleeps(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def leaves_a_child(path: str) -> None:
    """Starts a process in a session of its own, which outlives whoever does not look for it."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    Path(path).write_text(str(child.pid))
    time.sleep(600)


def until_asked(path: str) -> str:
    """Goes on until it is asked to end, and then tells how far it came."""
    try:
        Path(path).touch()
        time.sleep(600)
    except KeyboardInterrupt:
        return "a part"
    return "all"


@pytest.mark.parametrize("processes", [1, 3])
def test_every_task_comes_to_its_own_end(processes: int) -> None:
    names = ("a", "exits", "b", "faults", "hangs", "c", "eats", "raises", "d")
    with opened(processes, seconds=2.0, memory_limit=LIMIT) as pool:
        ended = {name: future for (name,), future in completed(pool, does, ((n,) for n in names))}
    assert {n: type(f.exception()) for n, f in ended.items() if f.exception()} == ENDS
    assert {n: f.result() for n, f in ended.items() if n not in ENDS} == {n: n.upper() for n in "abcd"}
    assert getattr(ended["exits"].exception(), "exitcode", None) == 3


def test_arguments_are_taken_when_a_process_is_free() -> None:
    ended = list[str]()

    def names() -> Iterator[tuple[str]]:
        for name in "abcdef":
            assert len(ended) >= ord(name) - ord("a") - 1
            yield (name,)

    with opened(2) as pool:
        for _, future in completed(pool, does, names()):
            ended.append(future.result())
    assert sorted(ended) == list("ABCDEF")


def test_several_tasks_are_done_at_once() -> None:
    with opened(3) as pool:
        assert len({f.result() for _, f in completed(pool, sleeps, [(0.5,)] * 3)}) == 3


def test_processes_may_be_killed_at_any_moment() -> None:
    """Also while they take a task, give a result, or wait: each costs at most its own task."""
    with opened(2) as pool:
        here, over = set(psutil.Process().children()), threading.Event()
        assert pool.submit(does, "first").result() == "FIRST"

        def kill() -> None:
            while not over.wait(0.002):
                for child in set(psutil.Process().children()) - here:
                    with suppress(psutil.NoSuchProcess):
                        child.kill()

        killing = threading.Thread(target=kill)
        killing.start()
        ends = [future for _, future in completed(pool, does, ((f"task {i}",) for i in range(30)))]
        over.set()
        killing.join()
        assert {type(future.exception()) for future in ends} <= {ProcessDied, type(None)} and len(ends) == 30
        lasts = [pool.submit(does, "last") for _ in range(4)]  # what was killed a moment ago may still take one
        assert {type(future.exception()) for future in lasts} <= {ProcessDied, type(None)}
        assert {pool.submit(does, "last").result() for _ in range(4)} == {"LAST"}


def test_a_result_that_cannot_be_sent_is_told() -> None:
    with opened(1) as pool:
        assert "cannot be sent" in str(pool.submit(threading.Lock).exception())
        assert pool.submit(does, "a").result() == "A"


def test_nothing_is_left_running(tmp_path: Path) -> None:
    before = psutil.Process().children()
    with opened(1) as pool:
        pool.submit(leaves_a_child, str(tmp_path / "pid"))
        pid = _read(tmp_path / "pid")
        (process,) = set(psutil.Process().children()).difference(before)
    assert not psutil.pid_exists(process.pid)
    assert soon(lambda: not _runs(pid))


def _read(path: Path) -> int:
    assert soon(lambda: path.exists() and path.read_text() != "")
    return int(path.read_text())


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_rest_is_cancelled_where_the_caller_stops() -> None:
    with opened(2) as pool:
        began = time.monotonic()
        for _, future in completed(pool, sleeps, [(0.1,), (30.0,), (30.0,)]):
            assert future.result()
            break
    assert time.monotonic() - began < 25


def test_interrupted_tasks_tell_what_they_have(tmp_path: Path) -> None:
    def interrupt() -> None:
        while not all((tmp_path / n).exists() for n in "ab"):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    told = list[str]()
    paths = ((str(tmp_path / n),) for n in "abc")
    with heeding_interrupts(), opened(2) as pool, pytest.raises(KeyboardInterrupt):
        told.extend(f.result() for _, f in completed(pool, until_asked, paths))
    assert told == ["a part", "a part"] and not (tmp_path / "c").exists()


class Gone(Pool):
    """A pool whose first task ends, and which is then gone in one of three ways."""

    def __init__(self, how: str) -> None:
        self.how, self.tasks = how, 0

    @property
    def processes(self) -> int:
        return 0 if self.how == "empty" and self.tasks > 1 else 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.tasks += 1
        future = Future[Any]()
        if self.tasks == 1:
            future.set_result(fn(*args))
        elif self.how == "broken":
            future.set_exception(BrokenExecutor("as said"))
        elif self.how == "cancelled":
            future.cancel()
            future.set_running_or_notify_cancel()
        return future


@pytest.mark.parametrize("how", ["broken", "cancelled", "empty"])
def test_a_pool_that_is_gone_is_told_from_a_task_that_failed(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "LOOK_AGAIN", 0.05)
    monkeypatch.setattr(tasks, "PATIENCE", 0.2)
    ended = completed(Gone(how), does, [("a",), ("b",)])
    assert next(ended)[1].result() == "A"
    with pytest.raises(BrokenExecutor):
        next(ended)
