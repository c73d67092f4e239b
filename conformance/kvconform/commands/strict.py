"""`kvconform strict [ADAPTER ...]`: hashes the outputs of strict attention, for numpy and each adapter."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from kvadapters.find import BUILT_IN
from kvconform.message import tell
from kvconform.vectors import strict_hash
from kvconform.vectors.strict_hash import Output
from kvconform.worker.client import Worker, WorkerFailure, python_worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Description
from kvspec.errors import CannotRun

DEADLINE = 300.0
"""Seconds for one operation: simulators are slow."""


class Ran(NamedTuple):
    """The outputs of an adapter, and its device."""

    device: str
    found: list[Output]


def main(options: Namespace) -> int:
    """Print a line for each adapter; return 1 if one differs, 4 if a named one cannot run."""
    for name in options.adapters:
        _look_up(name)
    right = _ran("reference")
    print(_line("numpy", right, right))
    statuses = [_compared(name, right, bool(options.adapters)) for name in options.adapters or _others()]
    return max(statuses, default=0)


def _look_up(name: str) -> None:
    """Raise BadInput for an unknown adapter, before the others take time."""
    with Worker(python_worker(name)) as worker, suppress(CannotRun, WorkerFailure):
        worker.describe()


def _others() -> Sequence[str]:
    """Name the built-in adapters that are compared with numpy."""
    return [name for name in BUILT_IN if name != "reference"]


def _compared(name: str, right: Ran, named: bool) -> int:
    try:
        ran = _ran(name)
    except (CannotRun, WorkerFailure) as e:
        sys.stdout.flush()
        tell(f"{name} is left out: {e}")
        return 4 if named else 0
    print(_line(name, ran, right), flush=True)
    if said := strict_hash.difference(right.found, ran.found):
        print(f"  first at {said}", flush=True)
    return int(bool(said))


def _ran(name: str) -> Ran:
    """Run all traces on an adapter. Raises BadInput, CannotRun, WorkerFailure."""
    with Worker(python_worker(name), deadline=DEADLINE) as worker:
        adapter = worker.describe()
        _demand(adapter)
        session = RemoteSession(worker, ())
        return Ran(
            adapter.device, [o for trace in strict_hash.traces() for o in strict_hash.outputs(session, trace)]
        )


def _demand(adapter: Description) -> None:
    """Raise CannotRun unless the adapter claims every chapter that is used."""
    claimed = {chapter for chapter, claim in adapter.chapters.items() if claim.level == "storage"}
    if missing := [chapter for chapter in strict_hash.NEEDED if chapter not in claimed]:
        raise CannotRun(f"it does not claim {', '.join(missing)} at level storage")


def _line(name: str, ran: Ran, right: Ran) -> str:
    count = sum(o.array.size for o in ran.found if o.array is not None)
    hash_ = strict_hash.digest(ran.found)
    words = f"{hash_}  {name:10} {len(ran.found)} outputs, {count} numbers; {ran.device}"
    if ran is right:
        return words
    return f"{words}; {'the same' if hash_ == strict_hash.digest(right.found) else 'DIFFERS'}"
