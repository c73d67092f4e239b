"""A pool of processes of this machine, pebble's. A process that dies or takes too long fails one task."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Any, Literal, TypeVar
from weakref import WeakSet

import pebble

from kvconform.worker import memory
from kvconform.worker.signals import handling, interrupt
from kvconform.worker.tasks import Pool

pebble.CONSTS.channel_lock_timeout = 5.0  # a process killed while it takes a task leaves the others' lock locked

Result = TypeVar("Result")
Start = Literal["fork", "spawn"]

ENDS = signal.SIGUSR1
"""Asks a process to end its task with what it has: raises KeyboardInterrupt in the task."""

LAST_BREATH = 3.0
"""Seconds that a task has for that."""


class LocalPool(Pool):
    """Processes of this machine. Forked, they have all that was read and drawn here before the first task."""

    def __init__(self, processes: int, seconds: float | None, memory_limit: int, start: Start = "fork") -> None:
        self._processes, self._seconds = processes, seconds
        self._context = _Context(start)
        self._pool: Any = pebble.ProcessPool(processes, 0, _begin, (memory_limit,), self._context)
        self._futures = WeakSet[Future[Any]]()
        self._closed = False

    @property
    def processes(self) -> int:
        """As many as it was opened with: pebble starts a new one where one died."""
        return self._processes

    @property
    def idle(self) -> bool:
        """Whether it has no task."""
        return all(future.done() for future in list(self._futures))

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Have a task done as soon as a process is free."""
        future: Future[Result] = self._pool.schedule(_performed, (fn, *args), kwargs, self._seconds)
        self._futures.add(future)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes and what they started: when all tasks are done, or now if tasks may be cancelled.

        A task under way then gets KeyboardInterrupt; what it returns within LAST_BREATH is still its result.
        """
        if self._closed:
            return
        self._closed = True
        if cancel_futures:
            self._interrupt()
        else:
            futures.wait(list(self._futures))
        family = {relative for pid in self._context.alive() for relative in memory.family(pid)}
        self._pool.stop()  # first, so that no process is started in the place of those that end here
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._pool.join()

    def _interrupt(self) -> None:
        """Cancel what has not begun; let the rest tell what it has."""
        for future in list(self._futures):
            if not future.running():
                future.cancel()
        for pid in self._context.alive():
            with suppress(ProcessLookupError):
                os.kill(pid, ENDS)
        futures.wait([future for future in self._futures if future.running()], LAST_BREATH)


class _Context:
    """A context of `multiprocessing` that knows which processes it started."""

    def __init__(self, start: Start) -> None:
        self._context: Any = get_context(start)
        self._started: list[BaseProcess] = []

    def alive(self) -> list[int]:
        """The ids of those that run."""
        return [process.pid for process in self._started if process.is_alive() and process.pid]

    def Process(self, **settings: Any) -> BaseProcess:
        """A process that is not started yet."""
        self._started = [p for p in self._started if p.pid is None or p.is_alive()]
        process: BaseProcess = self._context.Process(**settings)
        self._started.append(process)
        return process

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def _begin(memory_limit: int) -> None:
    """In a process, before its first task."""
    memory.collect_seldom()
    signal.signal(ENDS, signal.SIG_IGN)
    if memory_limit:
        with suppress(ValueError, OSError):  # macOS does not limit addresses
            resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))


def _performed(fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Result:
    """In a process, one task."""
    with handling(interrupt, ENDS):
        return fn(*args, **kwargs)
