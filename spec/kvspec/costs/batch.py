"""Cost bounds of the operations on the batch of a store."""

from __future__ import annotations

from kvspec.costs.store import buffers, layers_of
from kvspec.costs.terms import BUFFER, Case, Cost, bookkeeping, bounded, crossing, how, written


def scatter(case: Case) -> Cost:
    """Scatter: copy the rows once to their places."""
    rows = case.op["n"] * case.config.row_bytes * layers_of(case)
    return bounded(
        "RESIDENCY-16",
        device_to_device=rows,
        launches=layers_of(case) + 1,
        host_to_device=case.entries,
        synchronisations=1,
    )


def step(case: Case) -> Cost:
    """Step: one row for each sequence in each layer. For captured work they pass through a place of their own."""
    rows = case.config.row_bytes * (case.config.layers or 1) * max(1, case.sequences)
    again = 2 if case.op["op"] == "replay" else 1
    return Cost(how(case), (crossing(case, rows), written(case, "RESIDENCY-17", again * rows, again)))


def capture(case: Case) -> Cost:
    """Capture: allocate a place for later rows. Nothing runs yet."""
    return bounded("RESIDENCY-17", allocations=BUFFER + 1, synchronisations=1)


batch = buffers
resetbatch = freebatch = bookkeeping
replay = step
