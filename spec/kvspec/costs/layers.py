"""The cost bounds of what gives a cache of several layers rows. Its rewinds and frees change lengths alone."""

from __future__ import annotations

from kvspec.costs.terms import BUFFER, Case, Cost, bounded, crossing, how, no_rows, nothing, written
from kvspec.geometry import encoded_layers


def append(case: Case) -> Cost:
    """Append rows. Those of a layer cross once, however many layers show them. The others may move twice."""
    n, layers = case.op["n"], case.config.layers or 1
    if n == 0:
        return no_rows(case)
    row, before = case.config.row_bytes, int(case.cache.before.get("offset") or 0)
    bound = written(case, "LAYER-24", layers * (2 * before + n) * row, 8 * layers, 2 * layers * BUFFER)
    return Cost(how(case), (crossing(case, n * layers * row), bound))


def encode(case: Case) -> Cost:
    """Hand in rows of an encoder: they cross once, and are written once."""
    n, layers = case.op["n"], encoded_layers(case.config)
    if n == 0:
        return no_rows(case)
    nbytes = n * layers * case.config.row_bytes
    bound = written(case, "LAYER-46", nbytes, 2 * layers, 2 * layers * BUFFER)
    return Cost(how(case), (crossing(case, nbytes), bound))


def branch(case: Case) -> Cost:
    """Hand in drafts: they cross once, and are written once; no other row moves."""
    n, layers = case.op["n"], case.config.layers or 1
    if n == 0:
        return no_rows(case)
    nbytes = n * layers * case.config.row_bytes
    bound = written(case, "LAYER-56", nbytes, 4 * layers, 2 * layers * BUFFER)
    return Cost(how(case), (crossing(case, nbytes), bound))


def settle(case: Case) -> Cost:
    """Settle for a draft: each that is kept moves once, and then as an append has it. Nothing crosses."""
    before, after = (int(at.get("offset") or 0) for at in (case.cache.before, case.cache.after))
    n, layers = after - before, case.config.layers or 1
    if n == 0:
        return nothing(case)
    moved = layers * (2 * before + 2 * n) * case.config.row_bytes
    return bounded(
        "LAYER-56", device_to_device=moved, launches=8 * layers + n, allocations=(2 * layers + 1) * BUFFER
    )
