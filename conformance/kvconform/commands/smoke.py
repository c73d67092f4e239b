"""`kvconform smoke ADAPTER`: runs a few steps in order and says what each failure means. A failure here means that
the adapter is connected wrongly; it says little about the cache behind it.
"""

from __future__ import annotations

from argparse import Namespace
from typing import NamedTuple

from kvconform.judge import trial
from kvconform.worker.client import Worker, WorkerFailure, python_worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Description
from kvspec.geometry import Config
from kvspec.notation import operation
from kvspec.operations.abilities import needed
from kvspec.tables import table
from kvspec.trace import Trace


class Step(NamedTuple):
    """One operation, what it shows, and what its failure means."""

    do: str
    shows: str
    means: str


def plans() -> dict[str, tuple[Config, list[Step]]]:
    """Give, for each kind, the config to open and the steps to try, in order."""
    rows = table("kvconform.commands", "smoke")["smoke"]
    return {
        kind: (Config(**sizes), [Step(*s) for s in row["steps"]])
        for row in rows
        for kind, sizes in row["open"].items()
    }


def main(options: Namespace) -> int:
    """Try the steps on each declared kind, as far as they are claimed; return 1 if one fails."""
    with Worker(list(options.process) or python_worker(options.adapter)) as worker:
        try:
            adapter = worker.describe()
            claims = ", ".join(f"{p} at {c.level}" for p, c in adapter.chapters.items())
            print(f"ok    it starts and describes itself: {adapter.name} {adapter.version}: {claims}")
        except WorkerFailure as e:
            print(f"FAIL  it starts and describes itself: {e.verdict}: {e}")
            return 1
        fine = [_try(worker, adapter, kind, *plan) for kind, plan in plans().items() if kind in adapter.chapters]
        return int(not all(fine))


def _try(worker: Worker, adapter: Description, kind: str, config: Config, steps: list[Step]) -> bool:
    steps = [step for step in steps if adapter.able(needed(operation(step.do), kind, config))]
    config = adapter.widened(config.changed(dtype=adapter.dtypes[0]))
    trace = Trace(kind, config, tuple(operation(step.do) for step in steps))
    level = trial.level_of(trace, adapter)
    result = trial.run(trace, RemoteSession(worker, trial.observables(trace, adapter, level)), adapter, level)
    tried = steps[: len(result.steps)]
    for step, (want, _) in zip(tried, result.steps, strict=False):
        failed = result.failed and step is tried[-1]
        shows = step.shows if adapter.plain else f"expected {want.result}"
        print(f"{'FAIL' if failed else 'ok  '}  {kind}: {step.do}: {shows}")
    if result.failed:
        print(f"      {result.differences[0].message}\n      Likely: {tried[-1].means}")
    return not result.failed
