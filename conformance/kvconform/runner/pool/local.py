"""A pool of processes of this machine. A process that dies or takes too long fails one task.

Each process has a pipe of its own. Where processes take tasks from one queue, as those of Python's pool do, one
that is killed while it holds the queue's lock stops all others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar
from weakref import WeakSet

from kvconform.worker.task_process import Start, TaskProcess
from kvconform.worker.tasks import Pool

Result = TypeVar("Result")

LAST_BREATH = 3.0
"""Seconds in which an interrupted task can return what it has."""


class LocalPool(Pool):
    """Processes of this machine. They are forked, so they share all that was read and drawn here before the first
    task."""

    def __init__(self, processes: int, seconds: float | None, memory_limit: int, start: Start = "fork") -> None:
        self._processes = [TaskProcess(seconds, memory_limit, start) for _ in range(processes)]
        self._free = SimpleQueue[TaskProcess]()
        self._threads = ThreadPoolExecutor(processes)
        self._futures = WeakSet[Future[Any]]()
        self._lock = threading.Lock()
        self._begun = False

    @property
    def processes(self) -> int:
        """As many as it was opened with: a new one starts where one died."""
        return len(self._processes)

    @property
    def idle(self) -> bool:
        """Whether it has no task."""
        return all(future.done() for future in list(self._futures))

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Have a task done as soon as a process is free."""
        self._begin()
        future = self._threads.submit(self._done, partial(fn, *args, **kwargs))
        self._futures.add(future)
        return future

    def _begin(self) -> None:
        """Start all processes before the first thread: a fork of a process with threads can deadlock."""
        with self._lock:
            for process in [] if self._begun else self._processes:
                process.start()
                self._free.put(process)
            self._begun = True

    def _done(self, task: Callable[[], Result]) -> Result:
        """Do one task; runs in a thread."""
        process = self._free.get()
        try:
            return process.do(task)
        finally:
            self._free.put(process)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes and what they started: when all tasks are done, or now if tasks may be cancelled.

        A task under way then gets KeyboardInterrupt; what it returns within LAST_BREATH is still its result.
        """
        if cancel_futures:
            self._interrupt()
        else:
            futures.wait(list(self._futures))
        for process in self._processes:
            process.close()
        self._threads.shutdown()

    def _interrupt(self) -> None:
        """Cancel tasks that have not begun; let the others return what they have."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.interrupt()
        futures.wait([future for future in list(self._futures) if future.running()], LAST_BREATH)
