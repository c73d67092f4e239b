"""Runs tasks on a pool: as many at once as it has processes, and the next when one ends."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from itertools import islice
from time import monotonic
from typing import TypeVar, TypeVarTuple

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

LOOK_AGAIN = 5.0
"""Seconds without a result after which the pool is asked whether it still has processes."""

PATIENCE = 60.0
"""Seconds that a pool may be without any process: a cluster starts a new one where one died."""


class ProcessDied(Exception):
    """The process of a task died. A negative `exitcode` is the signal that killed it; None is not known."""

    def __init__(self, message: str, exitcode: int | None = None) -> None:
        super().__init__(message)
        self.exitcode = exitcode


class Pool(Executor):
    """An executor that knows how many tasks it can do at once.

    The exception of a future is the task's own, TimeoutError if the task took too long, ProcessDied, or
    BrokenExecutor if the pool is gone.
    """

    @property
    @abstractmethod
    def processes(self) -> int:
        """Give how many tasks it can run at once now; 0 while it has no process."""


def completed(
    pool: Pool, task: Callable[[*Arguments], Result], arguments: Iterable[tuple[*Arguments]]
) -> Iterator[tuple[tuple[*Arguments], Future[Result]]]:
    """Yield each task's arguments and its future once it has ended, in the order in which tasks end.

    Arguments are taken when a process is free, so that they can depend on what came before. Raises BrokenExecutor
    when the pool is gone. When interrupted, it yields the tasks that still end, then raises KeyboardInterrupt.
    """
    todo = iter(arguments)
    running = dict[Future[Result], tuple[*Arguments]]()
    try:
        while True:
            for given in islice(todo, max(0, max(1, pool.processes) - len(running))):
                running[pool.submit(task, *given)] = given
            if not running:
                return
            for future in _ended(pool, running):
                yield running.pop(future), future
    except GeneratorExit:
        for future in running:
            future.cancel()
        raise
    except KeyboardInterrupt:
        pool.shutdown(cancel_futures=True)
        yield from ((given, future) for future, given in running.items() if _has_result(future))
        raise


def _ended(pool: Pool, running: Mapping[Future[Result], object]) -> list[Future[Result]]:
    """Wait for at least one. Raises BrokenExecutor."""
    last = monotonic()
    while not (ended := wait(running, LOOK_AGAIN, FIRST_COMPLETED).done):
        if pool.processes:
            last = monotonic()
        elif monotonic() - last > PATIENCE:
            raise BrokenExecutor(f"the pool had no process for {PATIENCE:g} seconds")
    for future in ended:
        if future.cancelled():
            raise BrokenExecutor("the pool was closed while tasks were running")
        if isinstance(broken := future.exception(), BrokenExecutor):
            raise broken
    return [future for future in running if future in ended]


def _has_result(future: Future[Result]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
