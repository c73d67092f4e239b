"""`kvconform smoke ADAPTER`: a few steps in order, each with what its failure means. A failure here says that the
adapter is wired wrongly; it says little about the cache behind it.
"""

from __future__ import annotations

from argparse import Namespace

from kvconform import trial
from kvconform.remote import RemoteSession
from kvconform.worker import Worker, WorkerFailure, python_worker
from kvspec.contract import Description
from kvspec.geometry import CACHES, Config
from kvspec.notation import operation
from kvspec.trace import Trace

STEPS = (
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


def main(options: Namespace) -> int:
    """Try the steps on each cache that is declared; 1 if one fails."""
    with Worker(list(options.process) or python_worker(options.adapter)) as worker:
        try:
            adapter = worker.describe()
            claims = ", ".join(f"{p} at {c.level}" for p, c in adapter.profiles.items())
            print(f"ok    it starts and describes itself: {adapter.name} {adapter.version}: {claims}")
        except WorkerFailure as e:
            print(f"FAIL  it starts and describes itself: {e.verdict}: {e}")
            return 1
        fine = [_cache(worker, adapter, p) for p in CACHES if p in adapter.profiles]
        return int(not all(fine))


def _cache(worker: Worker, adapter: Description, profile: str) -> bool:
    config = Config(window=4 if profile == "ring" else None, dtype=adapter.dtypes[0])
    trace = Trace(profile, config, tuple(operation(do) for do, *_ in STEPS))
    level = trial.level_of(trace, adapter)
    seen = trial.run(trace, RemoteSession(worker, trial.observables(adapter, level)), adapter, level)
    for i, (do, what, _) in enumerate(STEPS[: len(seen.steps)]):
        last = seen.failed and i == len(seen.steps) - 1
        print(f"{'FAIL' if last else 'ok  '}  {profile}: {do}: {what}")
    if seen.failed:
        print(f"      {seen.differences[0].message}\n      Likely: {STEPS[len(seen.steps) - 1][2]}")
    return not seen.failed
