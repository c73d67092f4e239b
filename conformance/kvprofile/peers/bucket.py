"""Rows of all layers padded to a bound, as compiled graphs need them: attention reads all, through a mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvprofile.operation import Job
from kvprofile.peers.host_arrays import Rows
from kvprofile.workloads.bucket import STEPS


def decode(rows: Rows) -> Job:
    """Write a row of each layer at its position, then attend over the bound."""
    rows, case = rows.layered(), rows.case
    asked, handles, sources = rows.queries(), rows.caches(case.context), rows.caches(1, 64, 1)

    def do(i: int) -> Any:
        handle, past = handles[i % len(handles)], case.context - STEPS + i // len(handles) % STEPS
        rows.write(handle, 2, past, sources[i % len(sources)])
        return rows.library.attend(asked, *handle, seen=past + 1)

    return Job(do)


WORK: dict[str, Callable[[Rows], Job]] = {"bucket decode": decode}
"""The work of a step. Peers do all else with buckets as they do it with caches, for all layers at once."""
