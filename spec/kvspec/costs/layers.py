"""The cost bounds of what gives a cache of several layers rows. Its rewinds and frees change lengths alone."""

from __future__ import annotations

from kvspec.costs.terms import BUFFER, Case, Cost, crossing, how, no_rows, written
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
