"""Cost bounds of the operations on a store."""

from __future__ import annotations

from kvspec.costs.terms import (
    BUFFER,
    ENTRY,
    PADDING,
    Case,
    Cost,
    bookkeeping,
    bounded,
    crossing,
    how,
    no_rows,
    written,
)
from kvspec.geometry import DTYPES


def layers_of(case: Case) -> int:
    """Count the layers of an operation."""
    return 1 if case.op.get("layer") is not None else case.config.layers or 1


def append(case: Case) -> Cost:
    """Append rows behind the lengths: one launch for one row, another for the lengths if there are several."""
    n, rows = case.op["n"], case.op["n"] * case.config.row_bytes * layers_of(case)
    if n == 0:
        return no_rows(case)
    bound = written(case, "RESIDENCY-3", rows, 1 if n == 1 else 2)
    return Cost(f"{how(case)}, {'one row' if n == 1 else 'a chunk'}", (crossing(case, rows), bound))


def buffers(case: Case) -> Cost:
    """Allocate and initialise new buffers, or none. No row moves."""
    buffers = 2 * (case.config.layers or 1) + 1
    return bounded(
        "RESIDENCY-15",
        allocations=BUFFER * buffers,
        launches=BUFFER * buffers,
        synchronisations=BUFFER * buffers,
        host_to_device=2 * _entries(case),
    )


def _entries(case: Case) -> int:
    """Count the bytes of the lengths afterwards."""
    sequences = max(case.sequences, len(case.got.values.get("sequences") or ()), case.op.get("m") or 0)
    layers = max(case.config.layers or 0, case.op.get("layers") or 0)
    return ENTRY * (1 + layers * (1 + sequences))


def zero(case: Case) -> Cost:
    """Zero: overwrite every row in place."""
    layers = case.config.layers or 1
    return bounded("RESIDENCY-15", launches=BUFFER * layers + 1, host_to_device=case.entries, synchronisations=1)


def save(case: Case) -> Cost:
    """Save: the live rows cross, at most layer by layer, and may be gathered first."""
    read, layers = case.returned("saved"), case.config.layers or 1
    return bounded(
        "RESIDENCY-9",
        device_to_host=read,
        device_to_device=read,
        launches=layers,
        allocations=BUFFER,
        synchronisations=BUFFER * layers,
    )


def load(case: Case) -> Cost:
    """Load: the rows of all layers cross once, each layer padded at most to the longest."""
    layers, longest = case.config.layers or 1, max(case.got.values.get("lengths") or (0,))
    rows = layers * longest * case.config.row_bytes
    return bounded(
        "RESIDENCY-2",
        host_to_device=rows + 2 * layers * PADDING + case.entries,
        device_to_device=rows,
        launches=2 * layers + 2,
        allocations=BUFFER,
        synchronisations=BUFFER * layers + 1,
    )


def fingerprint(case: Case) -> Cost:
    """Fingerprint: one key row crosses, or its sum."""
    row = case.config.k_dim * DTYPES[case.config.dtype].itemsize
    return bounded("RESIDENCY-9", device_to_host=max(ENTRY, row), launches=1, allocations=1, synchronisations=1)


init = buffers
reset = rollback = setlength = bookkeeping
