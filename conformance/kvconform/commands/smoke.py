"""`kvconform smoke ADAPTER`: a few steps in order, each with what its failure means. A failure here says that the
adapter is wired wrongly; it says little about the cache behind it.
"""

from __future__ import annotations

from argparse import Namespace

from kvconform.judge import trial
from kvconform.worker.client import Worker, WorkerFailure, python_worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Description
from kvspec.geometry import Config
from kvspec.operations.notation import operation
from kvspec.trace import Trace

Steps = tuple[tuple[str, str, str], ...]
"""For each step the operation, what it shows, and what a failure of it means."""

CACHE: Steps = (
    ("append 1", "one row is appended and read back", "append, lengths or read do not speak of the same rows"),
    ("append 2", "two more rows come behind it", "a second append does not continue where the first ended"),
    (
        "append 0",
        "an append of no rows is taken and does nothing",
        "zero rows are legal everywhere; see GROW-3, RING-4",
    ),
    ("rewind 2", "a rewind drops the last row", "rewind does not set the offset, or can_rewind disagrees with it"),
    ("rewind 9", "a rewind beyond the end is refused", "raise kvspec.errors.Refused, and change nothing"),
    (
        "append 1",
        "a row takes the place of the one dropped",
        "the dead row is still there, or the new one is elsewhere",
    ),
    ("free", "the cache returns to never written", "free does not reset the lengths"),
)

COPY: Steps = (
    ("copy 2 0", "two rows go into the first two slots", "copy or read do not agree on where a row lies"),
    ("copy 1 3", "one row goes into the last slot", "rows before and behind it must stay as they were"),
    ("copy 2 3 sliding=1", "a sliding copy goes on at slot 0", "slots are counted modulo the capacity"),
    ("copy 2 3", "a copy past the end is refused", "raise kvspec.errors.Refused before anything is written"),
)

STORE: Steps = (
    ("append 2", "two rows are written to every layer", "append, lengths or read do not speak of the same rows"),
    ("append 1 layer=1", "one layer takes a row of its own", "each layer has a length of its own"),
    ("rollback 2", "the longer layer is lowered", "rollback leaves layers that are not longer"),
    ("append 9", "rows beyond max_len are refused", "raise kvspec.errors.Refused before anything is written"),
    ("reset", "every length is 0", "reset does not reach every layer"),
)

OPENED: dict[str, tuple[Config, Steps]] = {
    "growing": (Config(), CACHE),
    "ring": (Config(window=4), CACHE),
    "copy": (Config(capacity=4, layout="token"), COPY),
    "store": (Config(layers=2, max_len=8), STORE),
}
"""What is opened of each kind, and the steps tried on it."""


def main(options: Namespace) -> int:
    """Try the steps on each kind that is declared; 1 if one fails."""
    with Worker(list(options.process) or python_worker(options.adapter)) as worker:
        try:
            adapter = worker.describe()
            claims = ", ".join(f"{p} at {c.level}" for p, c in adapter.chapters.items())
            print(f"ok    it starts and describes itself: {adapter.name} {adapter.version}: {claims}")
        except WorkerFailure as e:
            print(f"FAIL  it starts and describes itself: {e.verdict}: {e}")
            return 1
        fine = [_tried(worker, adapter, p) for p in OPENED if p in adapter.chapters]
        return int(not all(fine))


def _tried(worker: Worker, adapter: Description, kind: str) -> bool:
    config, steps = OPENED[kind]
    trace = Trace(kind, config.changed(dtype=adapter.dtypes[0]), tuple(operation(do) for do, *_ in steps))
    level = trial.level_of(trace, adapter)
    seen = trial.run(trace, RemoteSession(worker, trial.observables(adapter, level)), adapter, level)
    for i, (do, what, _) in enumerate(steps[: len(seen.steps)]):
        last = seen.failed and i == len(seen.steps) - 1
        print(f"{'FAIL' if last else 'ok  '}  {kind}: {do}: {what}")
    if seen.failed:
        print(f"      {seen.differences[0].message}\n      Likely: {steps[len(seen.steps) - 1][2]}")
    return not seen.failed
