"""A process that does tasks, and the pipe to it."""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from time import monotonic
from traceback import format_exc
from typing import Any, Literal, TypeVar

from kvconform.worker import memory
from kvconform.worker.signals import handling, interrupt
from kvconform.worker.start import SUPERVISED
from kvconform.worker.supervisor import signal_when_parent_ends
from kvconform.worker.tasks import ProcessDied

Result = TypeVar("Result")
Start = Literal["fork", "spawn"]

ENDS = signal.SIGUSR1
"""Asks a process to end its task with what it has: raises KeyboardInterrupt in the task."""

TAKEN = "taken"
"""What a process says before it begins a task."""

PARENT_GONE = signal.SIGUSR2
"""Comes when the parent has ended, or the thread of it that started the process. Linux alone sends it."""

STARTS = 300.0
"""Seconds in which a process must have taken a task: a new one imports what the task needs, on a busy machine."""

LOOK_AGAIN = 1.0
"""Seconds after which each side of a pipe checks that the other still lives; a sibling may keep a pipe open."""


class TaskProcess:
    """A process that does one task after another. Where it died, the next task starts a new one.

    The seconds of a task count from when the process has taken it.
    """

    def __init__(self, seconds: float | None, memory_limit: int, start: Start) -> None:
        self._seconds, self._memory_limit = seconds, memory_limit
        self._context: Any = get_context(start)
        self._process: BaseProcess | None = None
        self._pipe: Connection
        self._starts, self._closed = threading.Lock(), False

    @property
    def alive(self) -> bool:
        """Whether it has started and not ended."""
        return self._process is not None and self._process.is_alive()

    def start(self) -> None:
        """Start it. Raises BrokenExecutor after `close`, and when the system starts no more processes."""
        with self._starts:
            if self._closed:
                raise BrokenExecutor("its pool was closed")
            try:
                self._pipe, theirs = self._context.Pipe()
                process = self._context.Process(target=_serve, args=(theirs, os.getpid(), self._memory_limit))
                process.start()
            except OSError as e:
                raise BrokenExecutor(f"no process could be started: {e}") from e
            self._process = process
            theirs.close()

    def do(self, task: Callable[[], Result]) -> Result:
        """Do one task. Raises what it raises, or TimeoutError, ProcessDied, BrokenExecutor."""
        if not self.alive:
            self.start()
        try:
            self._pipe.send(task)
            self._answer(STARTS)  # it has taken the task
            result, error = self._answer(self._seconds)
        except (EOFError, ConnectionError):
            raise self._death() from None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def _answer(self, seconds: float | None) -> Any:
        """What it says next. Raises EOFError when it has died, TimeoutError after the seconds."""
        ends = monotonic() + seconds if seconds else float("inf")
        while not self._pipe.poll(max(0.0, min(LOOK_AGAIN, ends - monotonic()))):
            if monotonic() >= ends:
                self.kill()
                raise TimeoutError(f"it took more than {seconds:g} seconds")
            if not self.alive:
                raise EOFError
        return self._pipe.recv()

    def _death(self) -> ProcessDied:
        self.kill()
        assert self._process is not None
        return ProcessDied("the process of the task died", self._process.exitcode)

    def interrupt(self) -> None:
        """Ask it to end its task with what it has."""
        if self._process is not None and self._process.pid is not None and self.alive:
            _send(self._process.pid, ENDS)

    def kill(self) -> None:
        """End it and what it started."""
        if self._process is None or self._process.pid is None:
            return
        for pid in memory.family(self._process.pid) if self.alive else ():
            _send(pid, signal.SIGKILL)
        self._process.join()

    def close(self) -> None:
        """End it for good."""
        with self._starts:
            self._closed = True
        self.kill()


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _serve(pipe: Connection, parent: int, memory_limit: int) -> None:
    """Do tasks until the parent closes the pipe or is gone; runs in the process."""
    _begin(parent, memory_limit)
    with suppress(EOFError, OSError):
        while os.getppid() == parent:
            if pipe.poll(LOOK_AGAIN):
                task = pipe.recv()
                pipe.send(TAKEN)
                _answer(pipe, *_performed(task))


def _begin(parent: int, memory_limit: int) -> None:
    """Prepare the process for tasks. The parent tells it when to end; signals of the terminal are ignored."""
    memory.collect_seldom()
    if SUPERVISED:
        signal.signal(PARENT_GONE, lambda *_: None if os.getppid() == parent else os._exit(1))
        signal_when_parent_ends(PARENT_GONE)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGHUP, ENDS):
        signal.signal(number, signal.SIG_IGN)
    if memory_limit:
        with suppress(ValueError, OSError):  # macOS does not limit addresses
            resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))


def _performed(task: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """The result of a task, or its exception."""
    try:
        with handling(interrupt, ENDS):
            return task(), None
    except BaseException as e:
        e.add_note(format_exc())  # a traceback does not go through a pipe
        return None, e


def _answer(pipe: Connection, result: Any, error: BaseException | None) -> None:
    """Send a result. One that cannot be sent is told as an error."""
    try:
        pipe.send((result, error))
    except OSError:
        raise
    except Exception as e:
        pipe.send((None, RuntimeError(f"its result cannot be sent: {type(e).__name__}: {e}\n{error or ''}")))
