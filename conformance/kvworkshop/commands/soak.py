"""`kvconform soak ADAPTER...`: judges correct adapters on millions of random operations; all must pass."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from pathlib import Path

from kvconform.message import tell
from kvconform.runner.pool import opened
from kvconform.worker import memory
from kvconform.worker.tasks import Pool
from kvspec.errors import BadInput
from kvworkshop.soak import Score, Soak, describe

EVERY = 10.0
"""Seconds between lines of progress."""

EARLY = 0.1
"""The share of a soak after which memory is first measured: by then everything that loads once is loaded."""


def main(options: Namespace) -> int:
    """Soak adapters. Return 0 if all passed, 1 if one failed, 3 if a process or the pool is lost, 130 stopped."""
    if Path(options.out).is_file():
        raise BadInput(f"--out: {options.out} is a file; name a folder for failing traces")
    with opened(options.processes, options.on) as pool:
        abouts = {name: pool.submit(describe, name).result() for name in options.adapters}
        soak = Soak(abouts, options.operations, Path(options.out), options.seed)
        progress = Progress(soak)
        status, ending = _run(soak, pool, progress)
    for score in soak.scores.values():
        print("\n".join(_lines(score, ending)), flush=True)
    print(progress.memory(), flush=True)
    for lost in soak.lost:
        tell(lost, "soak")
    if any(score.found for score in soak.scores.values()):
        return 1
    return status or 3 * bool(soak.lost)


def _run(soak: Soak, pool: Pool, progress: Progress) -> tuple[int, str]:
    """Run to the end. Give the status, and the word for a soak that ended early."""
    try:
        soak.run(pool, progress)
    except KeyboardInterrupt:
        return 130, " (interrupted)"
    except BrokenExecutor as e:
        tell(str(e), "soak")
        return 3, " (cut short)"
    return 0, ""


class Progress:
    """Writes a line of progress to standard error every few seconds, and watches the memory of this process."""

    def __init__(self, soak: Soak) -> None:
        self.soak, self.began = soak, time.monotonic()
        self.last, self.early = self.began, 0

    def __call__(self) -> None:
        """Count a judged batch. Write a line if it is time."""
        if not self.early and self.soak.share >= EARLY:
            self.early = memory.resident()
        if (now := time.monotonic()) - self.last < EVERY:
            return
        self.last = now
        done = ", ".join(map(_progress, self.soak.scores.values()))
        passed = f"{done} of {self.soak.operations} operations, {now - self.began:.0f} s"
        tell(passed, "soak")

    def memory(self) -> str:
        """Say how much memory this process holds now, and held after a tenth of the operations."""
        early = f"{self.early >> 20} MiB after a tenth of the operations, " if self.early else ""
        return f"memory of this process: {early}{memory.resident() >> 20} MiB at the end"


def _progress(score: Score) -> str:
    return f"{score.name} {score.operations}{f' ({len(score.found)} failed)' * bool(score.found)}"


def _lines(score: Score, ending: str) -> Iterator[str]:
    """Say how far an adapter came, and list the findings."""
    counted = f"{score.traces} traces, {len(score.found)} failed, {score.operations} operations"
    yield f"{score.name}: {counted}, up to seed {score.seed}{ending}"
    yield "  " + ", ".join(f"{source} {n}" for source, n in sorted(score.by_source.items()))
    yield from (f"  {path}" for path in score.found)
