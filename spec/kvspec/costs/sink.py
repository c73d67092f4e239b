"""Cost bounds of the operations on a window beside sinks."""

from __future__ import annotations

from kvspec.costs.terms import BUFFER, ENTRY, Case, Cost, bounded, crossing, how, no_rows, nothing, written
from kvspec.operations.table import positions_in


def append(case: Case) -> Cost:
    """Append rows. If the cache holds exactly the rows that a query sees, one new row takes the slot of the
    oldest."""
    n, row, most = case.op["n"], case.config.row_bytes, _most(case)
    if n == 0:
        return no_rows(case)
    if n == 1 and case.cache.before.get("buffered") == most:
        bound = written(case, "SINK-30", row, 1)
        return Cost(f"{how(case)}, in place", (crossing(case, row), bound))
    bound = written(case, "SINK-30", (2 * most + n) * row, 6, 2 * BUFFER)
    return Cost(f"{how(case)}, in order", (crossing(case, n * row), bound))


def _most(case: Case) -> int:
    """Count the rows that a query sees."""
    window, sinks = case.config.window or 0, case.config.sinks or 0
    return window + sinks if case.config.beside else window


def keep(case: Case) -> Cost:
    """Put the chosen rows together: each is moved twice at most, and an index may cross for each of its heads."""
    rows, config = len(positions_in(case.op["kept"])), case.config
    entries = ENTRY * rows * config.batch * config.kv_heads
    most = {"host_to_device": entries, "device_to_device": 2 * rows * config.row_bytes}
    return bounded("SINK-44", launches=4, allocations=2 * BUFFER, synchronisations=BUFFER, **most)


positions = nothing
