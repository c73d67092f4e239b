"""Cost bounds of the operations on a growing cache, a ring, a buffer and their snapshots."""

from __future__ import annotations

from typing import Any

from kvspec import masks
from kvspec.costs.terms import (
    BUFFER,
    ENTRY,
    PADDING,
    Bound,
    Bounded,
    Case,
    Cost,
    bookkeeping,
    crossing,
    how,
    no_rows,
    nothing,
    written,
)
from kvspec.operations.table import overridden


def append(case: Case) -> Cost:
    """Append rows behind the offset."""
    n, row, window = case.op["n"], case.config.row_bytes, case.config.window
    if n == 0:
        return no_rows(case)
    if window is not None and n > 1:
        bound = written(case, "RESIDENCY-5", (2 * window + n) * row, 4, 2 * BUFFER)
        return Cost(f"{how(case)}, a chunk", (crossing(case, n * row), bound))
    if case.cache.moved:
        offset = int(case.cache.before.get("offset") or 0)
        live = offset if window is None else min(offset, window)
        bound = written(case, "RESIDENCY-4", (live + n) * row, 3, BUFFER)
        return Cost(f"{how(case)}, new storage", (crossing(case, n * row), bound))
    bound = written(case, "RESIDENCY-3", n * row, 1)
    return Cost(f"{how(case)}, within the capacity", (crossing(case, n * row), bound))


def copy(case: Case) -> Cost:
    """Copy rows into a buffer; their own dtype sets the bytes that cross, the buffer's the bytes written."""
    n = case.op["n"]
    if n == 0:
        return no_rows(case)
    handed = max(n, case.op.get("rows") or 0)
    rows = overridden(case.config, case.op).changed(batch=1).row_bytes * handed
    bound = written(case, "RESIDENCY-3", case.config.row_bytes * n, 1)
    return Cost(how(case), (crossing(case, rows), bound))


def alias(case: Case) -> Cost:
    """Copy the buffer's own rows: if they can be copied at all, they are on the device already."""
    most = {"device_to_device": case.config.row_bytes * case.op["n"], "launches": 1}
    return Cost("resident", (Bound("RESIDENCY-3", most),)) if case.op["n"] else no_rows(case)


def view(case: Case) -> Cost:
    """Read: only the rows read cross; they may be gathered first."""
    read = case.returned("view")
    most = {
        "device_to_host": read,
        "device_to_device": read,
        "launches": 1,
        "allocations": 2,
        "synchronisations": 2,
    }
    return Cost("", (Bound("RESIDENCY-9", most),))


def mask(case: Case) -> Cost:
    """Mask: explicit arrays come from the host, the mask goes back; no row crosses."""
    given = [p.array.nbytes for p in masks.from_json(case.op["parts"]) if isinstance(p, masks.Explicit)]
    there, both, n = sum(given), sum(given) + case.returned("mask"), len(given)
    most = {
        "host_to_device": there + n * PADDING,
        "device_to_host": both,
        "device_to_device": both,
        "launches": n + 1,
        "allocations": 2 * n + 1,
        "synchronisations": 2 * n + 1,
    }
    return Cost("", (Bound("RESIDENCY-10", most),))


def _copied(nbytes: int, buffers: int, launches: int, entries: int = 0) -> Cost:
    """Bound rows copied once on the device into this many buffers."""
    most = {"device_to_device": nbytes, "allocations": buffers * BUFFER, "launches": launches}
    return Cost("", (Bound("RESIDENCY-11", most | {"host_to_device": entries}),))


def _made(case: Case, name: str = "snapshot") -> int:
    """Count the bytes of the new snapshot; 0 if there is none."""
    found: Any = case.got.values.get(name)
    return found[2] if found else 0


def snapshot(case: Case) -> Cost:
    """Save the rows."""
    return _copied(_made(case), 1, 2)


def restore(case: Case) -> Cost:
    """Restore the saved rows, and move those that stay if a growing cache gets new storage."""
    stay = case.cache.moved and case.config.window is None
    live = int(case.cache.before.get("offset") or 0) * case.config.row_bytes if stay else 0
    return _copied(live + case.saved.get(case.op["name"], 0), 1, 3, ENTRY)


def merge(case: Case) -> Cost:
    """Merge the rows of both."""
    return _copied(_made(case), 1, 3)


def split(case: Case) -> Cost:
    """Split the rows of one into two."""
    return _copied(case.saved.get(case.op["name"], 0), 2, 4)


COSTS: dict[str, Bounded] = {
    "view": view,
    "ask": nothing,
    "rewind": bookkeeping,
    "free": bookkeeping,
    "mask": mask,
    "snapshot": snapshot,
    "restore": restore,
    "merge": merge,
    "split": split,
    "close": nothing,
    "copy": copy,
    "alias": alias,
    "plan": nothing,
    "fit": nothing,
}
