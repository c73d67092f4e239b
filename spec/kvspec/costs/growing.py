"""Cost bounds of the operations on a growing cache or a ring."""

from __future__ import annotations

from kvspec.costs.terms import BUFFER, Case, Cost, bookkeeping, bounded, crossing, how, no_rows, nothing, written


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


def view(case: Case) -> Cost:
    """Read: only the rows read cross. They may be gathered first, and sinks may be read apart from others."""
    read, waits = case.returned("view"), 4 if case.config.sinks else 2
    return bounded(
        "RESIDENCY-9", device_to_host=read, device_to_device=read, launches=1, allocations=2, synchronisations=waits
    )


ask = nothing
rewind = free = bookkeeping
