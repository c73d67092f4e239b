"""Cost bounds of the operations on a bucketed cache."""

from __future__ import annotations

from collections import Counter

from kvspec.costs.terms import BUFFER, PADDING, Bound, Case, Cost, Counts, bounded, how, no_rows
from kvspec.operations.table import argument

FLOAT = 4
"""Bytes of an element of a query or of an output."""


SCRATCH = 2
"""Arrays of results between the two launches of attention, as for other caches."""


def decode(case: Case) -> Cost:
    """Decode: a graph of one row, after installing handles if needed."""
    installed = bool(argument(case.op, "refresh")) or _other_bound(case)
    return _step(case, 1, installed)


def block(case: Case) -> Cost:
    """Block: a graph of n rows. Handles are installed if n is above 1."""
    n = case.op["n"]
    return _step(case, n, n > 1 or _other_bound(case)) if n else no_rows(case)


def bind(case: Case) -> Cost:
    """Bind: install handles, or nothing."""
    installed = bool(argument(case.op, "refresh")) or _other_bound(case)
    when, most = _installing(case) if installed else ("bound", {})
    return Cost(when, (Bound("BUCKET-45", most),))


def _step(case: Case, n: int, installed: bool) -> Cost:
    """Bound a step. Inputs and the output cross, and the previous step's row may have to move to its slot."""
    rows, layers = n * _row(case), _layers(case)
    most = _asking(case, n, rows, BUFFER)
    most |= {"device_to_device": rows + _row(case), "launches": 4 * layers}
    if not installed:
        return Cost(f"{how(case)}, bound", (Bound("BUCKET-44", most),))
    when, more = _installing(case)
    return Cost(f"{how(case)}, {when}", (Bound("BUCKET-45", dict(Counter(most) + Counter(more))),))


def _asking(case: Case, n: int, rows: int = 0, places: int = 0) -> Counts:
    """Bound input rows, n queries and their output, and scratch space."""
    if case.resident:
        return {"allocations": SCRATCH if argument(case.op, "into") else SCRATCH + 1}
    queries, output = (n * _heads(case) * dim * FLOAT for dim in (case.config.k_dim, case.config.v_dim))
    return {
        "host_to_device": rows + queries + (places + 1) * PADDING,
        "device_to_host": output,
        "allocations": places + 2 + SCRATCH,
        "synchronisations": places + 2,
    }


def _installing(case: Case) -> tuple[str, Counts]:
    """Bound new handles with the past rows in them. The rows come from the device. They come from the host if that
    was asked for, or if only the host may have had them."""
    past, layers = int(case.cache.before.get("past") or 0) * _row(case), _layers(case)
    most = {"device_to_device": past, "launches": 4 * layers, "allocations": BUFFER * layers}
    refreshed = bool(case.op.get("refresh"))
    if not refreshed and any(case.cache.before.get(name) is not None for name in ("bound", "key")):
        return "carried over", most
    crossing = {"host_to_device": past + 2 * PADDING, "allocations": BUFFER, "synchronisations": BUFFER}
    return "from the host", dict(Counter(most) + Counter(crossing))


def _other_bound(case: Case) -> bool:
    before = case.cache.before.get("bound")
    return before is None or before != case.got.values.get("bound")


def sync(case: Case) -> Cost:
    """Sync: the past rows alone cross. They may be gathered first."""
    past, layers = int(case.cache.before.get("past") or 0) * _row(case), _layers(case)
    return bounded(
        "BUCKET-46",
        device_to_host=past,
        device_to_device=past,
        launches=layers,
        allocations=BUFFER,
        synchronisations=2 * BUFFER * layers,
    )


def nothing(case: Case) -> Cost:
    """Cost nothing: only the host's knowledge changes."""
    return bounded("BUCKET-46")


def encode(case: Case) -> Cost:
    """Encode: the rows cross once, into their own memory."""
    rows, layers = case.op["n"] * _row(case), _layers(case)
    arriving = 0 if case.resident else BUFFER
    return bounded(
        "BUCKET-47",
        how(case),
        host_to_device=0 if case.resident else rows + 2 * PADDING,
        device_to_device=rows,
        launches=layers,
        allocations=BUFFER * layers + arriving,
        synchronisations=arriving * layers,
    )


def cross(case: Case) -> Cost:
    """Cross: queries and their output, but no row. Any number of queries is legal, so the actual number counts."""
    asked = case.op["n"] if case.op.get("q_rows") is None else case.op["q_rows"]
    if asked == 0:
        return no_rows(case)
    most = _asking(case, asked)
    return Cost(how(case), (Bound("BUCKET-47", {**most, "launches": 2 * _layers(case)}),))


def _layers(case: Case) -> int:
    return case.config.layers or 1


def _row(case: Case) -> int:
    """Count the bytes of one row of every layer."""
    return _layers(case) * case.config.row_bytes


def _heads(case: Case) -> int:
    """Count the query heads of all sequences of all layers."""
    return _layers(case) * case.config.batch * int(case.op.get("heads") or case.config.kv_heads)


prefill = unbind = cut = nothing
