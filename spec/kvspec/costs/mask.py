"""The cost bound of a mask."""

from __future__ import annotations

from kvspec import masks
from kvspec.costs.terms import PADDING, Case, Cost, bounded


def mask(case: Case) -> Cost:
    """Mask: explicit arrays come from the host, and the mask goes back. No row crosses."""
    given = [p.array.nbytes for p in masks.from_json(case.op["parts"]) if isinstance(p, masks.Explicit)]
    there, both, n = sum(given), sum(given) + case.returned("mask"), len(given)
    return bounded(
        "RESIDENCY-10",
        host_to_device=there + n * PADDING,
        device_to_host=both,
        device_to_device=both,
        launches=n + 1,
        allocations=2 * n + 1,
        synchronisations=2 * n + 1,
    )
