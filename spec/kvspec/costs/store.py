"""Cost bounds of the operations on a store and its batch."""

from __future__ import annotations

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
    written,
)
from kvspec.geometry import DTYPES


def _layers(case: Case) -> int:
    """Count the layers of an operation."""
    return 1 if case.op.get("layer") is not None else case.config.layers or 1


def append(case: Case) -> Cost:
    """Append rows behind the lengths: one launch for one row, another for the lengths if there are several."""
    n, rows = case.op["n"], case.op["n"] * case.config.row_bytes * _layers(case)
    if n == 0:
        return no_rows(case)
    bound = written(case, "RESIDENCY-3", rows, 1 if n == 1 else 2)
    return Cost(f"{how(case)}, {'one row' if n == 1 else 'a chunk'}", (crossing(case, rows), bound))


def _buffers(case: Case) -> Cost:
    """Allocate and initialise new buffers, or none. No row moves."""
    buffers = 2 * (case.config.layers or 1) + 1
    most = {"allocations": BUFFER * buffers, "launches": BUFFER * buffers, "synchronisations": BUFFER * buffers}
    return Cost("", (Bound("RESIDENCY-15", {**most, "host_to_device": 2 * _entries(case)}),))


def _entries(case: Case) -> int:
    """Count the bytes of the lengths afterwards."""
    sequences = max(case.sequences, len(case.got.values.get("sequences") or ()), case.op.get("m") or 0)
    layers = max(case.config.layers or 0, case.op.get("layers") or 0)
    return ENTRY * (1 + layers * (1 + sequences))


def zero(case: Case) -> Cost:
    """Zero: overwrite every row in place."""
    layers = case.config.layers or 1
    most = {"launches": BUFFER * layers + 1, "host_to_device": case.entries, "synchronisations": 1}
    return Cost("", (Bound("RESIDENCY-15", most),))


def save(case: Case) -> Cost:
    """Save: the live rows cross, at most layer by layer, and may be gathered first."""
    read, layers = case.returned("saved"), case.config.layers or 1
    most = {"device_to_host": read, "device_to_device": read, "launches": layers}
    return Cost("", (Bound("RESIDENCY-9", {**most, "allocations": BUFFER, "synchronisations": BUFFER * layers}),))


def load(case: Case) -> Cost:
    """Load: the rows of all layers cross once, each layer padded at most to the longest."""
    layers, longest = case.config.layers or 1, max(case.got.values.get("lengths") or (0,))
    rows = layers * longest * case.config.row_bytes
    most = {
        "host_to_device": rows + 2 * layers * PADDING + case.entries,
        "device_to_device": rows,
        "launches": 2 * layers + 2,
        "allocations": BUFFER,
        "synchronisations": BUFFER * layers + 1,
    }
    return Cost("", (Bound("RESIDENCY-2", most),))


def fingerprint(case: Case) -> Cost:
    """Fingerprint: one key row crosses, or its sum."""
    row = case.config.k_dim * DTYPES[case.config.dtype].itemsize
    most = {"device_to_host": max(ENTRY, row), "launches": 1, "allocations": 1, "synchronisations": 1}
    return Cost("", (Bound("RESIDENCY-9", most),))


def scatter(case: Case) -> Cost:
    """Scatter: copy the rows once to their places."""
    rows = case.op["n"] * case.config.row_bytes * _layers(case)
    most = {"device_to_device": rows, "launches": _layers(case) + 1, "host_to_device": case.entries}
    return Cost("", (Bound("RESIDENCY-16", {**most, "synchronisations": 1}),))


def step(case: Case) -> Cost:
    """Step: one row for each sequence in each layer; for captured work they pass through a place of their own."""
    rows = case.config.row_bytes * (case.config.layers or 1) * max(1, case.sequences)
    again = 2 if case.op["op"] == "replay" else 1
    return Cost(how(case), (crossing(case, rows), written(case, "RESIDENCY-17", again * rows, again)))


def capture(case: Case) -> Cost:
    """Capture: allocate a place for later rows; nothing runs yet."""
    return Cost("", (Bound("RESIDENCY-17", {"allocations": BUFFER + 1, "synchronisations": 1}),))


COSTS: dict[str, Bounded] = {
    "init": _buffers,
    "reset": bookkeeping,
    "zero": zero,
    "rollback": bookkeeping,
    "setlength": bookkeeping,
    "save": save,
    "load": load,
    "fingerprint": fingerprint,
    "batch": _buffers,
    "scatter": scatter,
    "step": step,
    "resetbatch": bookkeeping,
    "freebatch": bookkeeping,
    "capture": capture,
    "replay": step,
}
