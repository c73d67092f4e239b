"""Cost bounds of snapshots: made, used and closed."""

from __future__ import annotations

from typing import Any

from kvspec.costs.terms import BUFFER, ENTRY, Case, Cost, bounded, nothing
from kvspec.geometry import encoded_layers


def _copied(case: Case, nbytes: int, buffers: int, launches: int, entries: int = 0) -> Cost:
    """Bound rows copied once on the device into this many buffers, of each layer that has rows of its own."""
    layers = (case.config.layers or 1) + encoded_layers(case.config)
    return bounded(
        "RESIDENCY-11",
        device_to_device=nbytes,
        allocations=layers * buffers * BUFFER,
        launches=layers * launches,
        host_to_device=entries,
    )


def _made(case: Case, name: str = "snapshot") -> int:
    """Count the bytes of the new snapshot; 0 if there is none."""
    found: Any = case.got.values.get(name)
    return found[2] if found else 0


def snapshot(case: Case) -> Cost:
    """Save the rows."""
    return _copied(case, _made(case), 1, 2)


def restore(case: Case) -> Cost:
    """Restore the saved rows, and move those that stay if a growing cache gets new storage."""
    stay = case.cache.moved and case.kind == "growing"
    live = int(case.cache.before.get("offset") or 0) * case.config.row_bytes if stay else 0
    return _copied(case, live + case.saved.get(case.op["name"], 0), 1, 3, ENTRY)


def merge(case: Case) -> Cost:
    """Merge the rows of both."""
    return _copied(case, _made(case), 1, 3)


def split(case: Case) -> Cost:
    """Split the rows of one into two."""
    return _copied(case, case.saved.get(case.op["name"], 0), 2, 4)


close = nothing
