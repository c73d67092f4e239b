"""Pools of processes for the tasks of runs, mutants, proofs and soaks, behind one `concurrent.futures.Executor`.

On this machine it is a process pool of ours. On a cluster it is `dask.distributed`; its workers pass each task on
to a pool of their own. A task is a function of a module. Names and traces are pickled, and verdicts come back as
JSON.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kvconform.worker.tasks import Pool
from kvspec.errors import BadInput


@contextmanager
def opened(
    processes: int | None = None, on: str | None = None, *, seconds: float | None = None, memory_limit: int = 0
) -> Iterator[Pool]:
    """A pool of this machine (one process a core, if not said), or of the cluster whose scheduler has address `on`.

    `seconds` is the longest a task may take, `memory_limit` the bytes of addresses that a process may have; by
    default neither is limited. All processes are gone when the block ends, however it ends. Raises BadInput for a
    cluster that does not answer, or has another version installed.
    """
    pool = _pool(processes, on, seconds, memory_limit)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _pool(processes: int | None, on: str | None, seconds: float | None, memory_limit: int) -> Pool:
    if not on:
        from kvconform.runner.pool.local import LocalPool  # most runs on a clause judge in their own process

        return LocalPool(processes or os.cpu_count() or 1, seconds, memory_limit)
    try:
        from kvconform.runner.pool.cluster import Cluster
    except ModuleNotFoundError as e:
        raise BadInput(
            f"a cluster needs dask, which is not installed ({e}): pip install 'kvconform[dask]'"
        ) from None
    return Cluster(on, seconds, memory_limit)
