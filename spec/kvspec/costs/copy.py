"""Cost bounds of copies into a buffer."""

from __future__ import annotations

from kvspec.costs.terms import Bound, Case, Cost, crossing, how, no_rows, written
from kvspec.operations.table import overridden


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
