"""A dask cluster as a pool. Its scheduler gives tasks to workers, and repeats tasks when their worker died.

A worker passes its tasks on to a pool of processes on its own machine. Dask itself runs tasks in threads, but a
task needs the first thread of its process, and may hang or kill it. That pool ends with the command that uses it.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import threading
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import hypothesis
from distributed import Client, get_worker

from kvconform.runner.pool.local import LAST_BREATH, LocalPool
from kvconform.runner.record.provenance import suite_digest
from kvconform.version import SUITE_VERSION
from kvconform.worker.tasks import Pool, ProcessDied
from kvspec import SPEC_VERSION
from kvspec.errors import BadInput
from kvspec.reading import clauses

Result = TypeVar("Result")

ANSWERS = 10.0
"""Seconds in which a scheduler must answer; a lost one is given up after them."""

JOINS = 60.0
"""Seconds in which a cluster's first worker must be there."""

AHEAD = 2
"""Tasks handed to the cluster for each of its threads, so that no thread waits for work."""


class Opened(NamedTuple):
    """One opening of a cluster, and the limits of its tasks."""

    id: str
    seconds: float | None
    memory_limit: int


class Cluster(Pool):
    """The workers of one scheduler. Raises BadInput if they cannot do our tasks."""

    def __init__(self, address: str, seconds: float | None, memory_limit: int) -> None:
        self.address = address
        self._opened = Opened(uuid4().hex, seconds, memory_limit)
        self._client = _connected(address)
        self._executor = self._client.get_executor(pure=False)
        self._tasks: dict[Future[Any], Future[Any]] = {}

    @property
    def processes(self) -> int:
        """A few for each thread of its workers; 0 while there is no worker."""
        try:
            return AHEAD * int(sum(self._client.nthreads().values()))
        except OSError:
            return 0

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Have a task done by some worker."""
        task, future = self._executor.submit(_on_worker, self._opened, fn, args, kwargs), Future[Result]()
        self._tasks[future] = task
        future.add_done_callback(self._forget)
        task.add_done_callback(lambda task: self._end(future, task))
        return future

    def _forget(self, future: Future[Any]) -> None:
        """Release a task that has ended; else dask repeats it when its worker dies."""
        task = self._tasks.pop(future)
        if future.cancelled():
            task.cancel()

    def _end(self, future: Future[Any], task: Future[Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result, error = task.result()
        except CancelledError:
            error = BrokenExecutor(f"the cluster at {self.address} went away")
        except Exception as e:  # dask gave it up: its workers died several times
            error = ProcessDied(f"{type(e).__name__}: {e}")
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the pools of all workers, as LocalPool ends one, and leave the cluster."""
        if not cancel_futures:
            futures.wait(list(self._tasks))
        with suppress(Exception):  # the cluster may be gone, or its workers
            self._client.run(_close, self._opened.id, on_error="ignore")
            futures.wait(list(self._tasks), LAST_BREATH)
        self._client.close()


def _connected(address: str) -> Any:
    """A client of the scheduler. All workers must have the versions of this machine. Raises BadInput."""
    for handler in logging.getLogger("distributed").handlers:
        handler.setLevel(logging.CRITICAL + 1)  # what matters of it our own errors say
    try:
        connect: Any = Client  # dask's functions have no types
        client = connect(address, timeout=ANSWERS, set_as_default=False)
        client.wait_for_workers(1, timeout=JOINS)
    except TypeError as e:  # dask's error for an address of tls:// without certificates
        raise BadInput(f"{address}: {e}; docs/SECURITY.md says which variables name the certificates") from None
    except (OSError, ValueError) as e:
        raise BadInput(f"{address}: no dask scheduler with a worker answers there ({e})") from None
    _compare(address, client)
    return client


def _compare(address: str, client: Any) -> None:
    """Refuse workers that would judge differently from this machine. Raises BadInput."""
    here = _installed()
    for worker, there in client.run(_installed, on_error="return").items():
        if there != here:
            client.close()
            raise BadInput(f"{address}: this machine has {here}; its worker {worker} has {there}")


def _installed() -> str:
    """What verdicts depend on: the suite, the spec, and the library that draws traces."""
    suite, spec = f"kvconform {SUITE_VERSION} ({suite_digest()})", f"spec {SPEC_VERSION} ({clauses.digest()})"
    return f"{suite}, {spec}, hypothesis {hypothesis.__version__}"


POOLS: dict[str, LocalPool | None] = {}
"""In a worker, the pool of each command that opened the cluster. None for a command that left it."""

LOCK = threading.Lock()


def _on_worker(
    opened: Opened, fn: Callable[..., Result], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Result | None, BaseException | None]:
    """Do one task in a thread of a worker. An exception is returned, so that dask does not log it."""
    try:
        return _pool_of(opened).submit(fn, *args, **kwargs).result(), None
    except BaseException as e:
        return None, e


def _pool_of(opened: Opened) -> LocalPool:
    """The pool of this opening, made for its first task. Raises CancelledError when it has been closed."""
    with LOCK:
        if opened.id not in POOLS:
            # Nannies make workers daemons, which may not have children: https://github.com/dask/distributed/issues/2142
            multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
            _close_idle()  # the leftovers of a command that was killed
            threads = get_worker().state.nthreads
            POOLS[opened.id] = LocalPool(threads, opened.seconds, opened.memory_limit, start="spawn")
        if (pool := POOLS[opened.id]) is None:
            raise CancelledError
        return pool


def _close_idle() -> None:
    for id, pool in list(POOLS.items()):
        if pool is not None and pool.idle:
            POOLS.pop(id)
            pool.shutdown(cancel_futures=True)


async def _close(id: str) -> None:
    """On a worker, end the pool of an opening, and let no task start another."""
    with LOCK:
        pool, POOLS[id] = POOLS.get(id), None
    if pool is not None:
        await asyncio.to_thread(pool.shutdown, cancel_futures=True)
