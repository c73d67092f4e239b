"""Cost bounds of attention: an append of the rows, queries and an output, and two launches."""

from __future__ import annotations

from kvspec import masks
from kvspec.costs import rope
from kvspec.costs.terms import BUFFER, PADDING, Bound, Case, Cost, Counts, bounded, how, no_rows
from kvspec.geometry import DTYPES
from kvspec.operations.table import argument, numbers_in
from kvspec.registry import CACHES

LAUNCHES = 2
"""Launches: the tiles, then joining their results."""

FLOAT = DTYPES["f32"].itemsize


def attend(case: Case) -> Cost:
    """Bound the append of the rows, then the queries."""
    n = case.op["n"]
    if n == 0:
        return no_rows(case)
    queries = _queries(case, case.config.batch * n)
    cost = _attend(case, queries)
    if case.op.get("scale") is not None or argument(case.op, "softcap"):
        most = _sum(_counts(cost), {"launches": 1, "allocations": 1})
        cost = Cost(f"{cost.when}, scored", (Bound("ATTN-43", most),))
    return _in_parts(case, _with_sinks(case, cost))


def _in_parts(case: Case, cost: Cost) -> Cost:
    """Bound it with rows that are cut into parts: the whole for each part, two launches more, and a few numbers."""
    cuts = numbers_in(case.op.get("cuts", "empty"))
    if not cuts:
        return cost
    counts, parts = _counts(cost), len(cuts) + 1
    more: Counts = {
        "launches": parts * (2 + counts["launches"]) - counts["launches"],
        "host_to_device": PADDING * 2,
        "allocations": 2,
        "synchronisations": 1,
    }
    return Cost(f"{cost.when}, in parts", (Bound("ATTN-65", _sum(counts, more)),))


def _with_sinks(case: Case, cost: Cost) -> Cost:
    """Bound it with the learned sinks that it may have."""
    if case.op.get("head_sinks") is None:
        return cost
    nbytes = len(numbers_in(case.op["head_sinks"])) * FLOAT + PADDING
    more: Counts = {"host_to_device": nbytes, "launches": 1, "allocations": 1, "synchronisations": 1}
    return Cost(f"{cost.when}, with sinks", (Bound("ATTN-58", _sum(_counts(cost), more)),))


def _attend(case: Case, queries: int) -> Cost:
    """Bound it without a scale, a softcap and sinks."""
    rows = _counts(case.append(case)) if case.append else {}
    if case.op.get("rope") is None:
        return _asked(case, queries, rows)
    cost = _asked(case, queries, _sum(rows, rope.inside(case, queries)))
    return Cost(f"{cost.when}, turned", tuple(Bound("ROPE-30", b.most) for b in cost.bounds))


def attendbatch(case: Case) -> Cost:
    """Bound queries alone."""
    queries = _queries(case, case.sequences)
    if not queries or case.op.get("q_rows") == 0:
        return no_rows(case)
    return _with_sinks(case, _asked(case, queries, {}))


def _asked(case: Case, queries: int, rows: Counts) -> Cost:
    """Bound queries, a mask and an output, beside the cost of the rows."""
    given = [p.array for p in masks.from_json(list(case.op.get("through") or ())) if isinstance(p, masks.Explicit)]
    handed = 0 if case.resident else 1
    scratch = (0 if case.again else LAUNCHES) + len(given)
    made = 1 if case.resident and not argument(case.op, "into") else 0
    asked: Counts = {
        "host_to_device": handed * (queries + PADDING) + sum(a.size * FLOAT + PADDING for a in given),
        "device_to_host": handed * case.returned("output"),
        "launches": LAUNCHES,
        "allocations": scratch + made + 2 * handed,
        "synchronisations": 2 * handed + len(given),
    }
    moved = case.kind in CACHES and case.cache.moved
    steady = case.resident and case.again and not given and not moved
    clause, when = ("RESIDENCY-19", ", again") if steady else ("RESIDENCY-18", "")
    return Cost(f"{how(case)}{when}", (Bound(clause, _sum(rows, asked)),))


def captureattend(case: Case) -> Cost:
    """Allocate and initialise the places for later inputs; nothing runs yet."""
    queries = _queries(case, 1)
    cost = bounded(
        "RESIDENCY-20", host_to_device=queries + PADDING, allocations=3 * BUFFER, synchronisations=BUFFER
    )
    return _with_sinks(case, cost)


def replayattend(case: Case) -> Cost:
    """Copy the row and queries to their places, append one row, launch twice, copy the output out."""
    row, output = case.config.row_bytes, case.returned("output")
    queries = output // case.config.v_dim * case.config.k_dim
    here = 0 if case.resident else 1
    return bounded(
        "RESIDENCY-20",
        how(case),
        host_to_device=here * (row + queries + 3 * PADDING),
        device_to_host=here * output,
        device_to_device=2 * row + (1 - here) * (queries + output),
        launches=LAUNCHES + 1 + (1 - here) * 3,
        allocations=BUFFER if here else 1,
        synchronisations=3 * here,
    )


def _queries(case: Case, count: int) -> int:
    """Count the bytes of n queries in every head."""
    heads: int = case.op.get("heads", case.config.kv_heads)
    return count * heads * case.config.k_dim * FLOAT


def _counts(cost: Cost) -> Counts:
    return {name: most for name, _, most in cost.allowed()}


def _sum(a: Counts, b: Counts) -> Counts:
    return {name: a.get(name, 0) + b.get(name, 0) for name in {**a, **b}}
