"""Cost bounds of RoPE: rotating rows alone, and the extra cost of an attend that rotates."""

from __future__ import annotations

from math import prod

from kvspec.costs.terms import BUFFER, PADDING, Bound, Case, Cost, Counts, how, no_rows
from kvspec.geometry import DTYPES
from kvspec.operations.table import overridden

ANGLE = 4
"""Bytes of a cosine or a sine; a pair of elements has one of each, so this is also the cost of one element."""


TABLES = 4
"""Most tables that may be allocated at once."""


def rotate(case: Case) -> Cost:
    """Rotate once, or twice."""
    rows = overridden(case.config, case.op)
    n, size = case.op["n"], prod(rows.shape("k", case.op["n"])) * DTYPES[rows.dtype].itemsize
    if size == 0:
        return no_rows(case)
    turns = 1 if case.op.get("by") is None else 2
    crossing = 0 if case.resident else size
    dims = rows.k_dim if case.op.get("dims") is None else case.op["dims"]
    each = {
        "host_to_device": crossing + n * dims * ANGLE + PADDING,
        "device_to_host": crossing,
        "device_to_device": size,
        "launches": 1,
        "allocations": TABLES + (1 if case.resident else BUFFER),
        "synchronisations": 1 if case.resident else 4,
    }
    return Cost(how(case), (Bound("ROPE-29", {name: turns * most for name, most in each.items()}),))


def inside(case: Case, queries: int) -> Counts:
    """Bound the extra cost of an attend of n rows that rotates its keys and queries of these bytes. It is a
    launch, a table, and scratch space for the results, unless an earlier attend was as large."""
    config, n = case.config, case.op["n"]
    keys = prod(config.shape("k", n)) * DTYPES[config.dtype].itemsize
    return {
        "host_to_device": n * config.k_dim * ANGLE + PADDING,
        "device_to_device": keys + queries,
        "launches": 1,
        "allocations": 0 if case.again else TABLES + 3,
        "synchronisations": 1,
    }
