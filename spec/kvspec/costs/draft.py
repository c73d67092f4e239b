"""Cost bounds of a round of speculation."""

from __future__ import annotations

from kvspec.costs.terms import (
    BUFFER,
    Bound,
    Case,
    Cost,
    Layer,
    bookkeeping,
    bounded,
    crossing,
    how,
    no_rows,
    written,
)


def speculate(case: Case) -> Cost:
    """Begin: the rows that drafts will see may be copied beside them, once for each layer."""
    live = sum(layer.live * layer.config.row_bytes for layer in case.layers)
    count = len(case.layers)
    return bounded("RESIDENCY-13", device_to_device=live, allocations=BUFFER * count, launches=2 * count)


def draft(case: Case) -> Cost:
    """Append drafts; earlier ones and the rows they see may have to move for lack of room."""
    n, row, layer = case.op["n"], case.config.row_bytes, case.cache
    if n == 0:
        return no_rows(case)
    bound = written(case, "RESIDENCY-13", (layer.live + layer.drafts + n) * row, 3, BUFFER)
    return Cost(how(case), (crossing(case, n * row), bound))


def commit(case: Case) -> Cost:
    """Commit: kept drafts go where an append would have put them. No other row of the context moves."""
    count = len(case.layers)
    most = {"allocations": 2 * BUFFER * count, "launches": 4 * count, "host_to_device": case.entries * count}
    moved = sum(_kept(layer) * layer.config.row_bytes for layer in case.layers)
    return Cost("", (Bound("RESIDENCY-14", {**most, "device_to_device": moved}),))


def choose(case: Case) -> Cost:
    """Choose: as a commit, and each draft that is kept may move once more, to stand behind the one it hangs on."""
    cost, drafts = commit(case), sum(layer.drafts for layer in case.layers)
    more = sum(layer.drafts * layer.config.row_bytes for layer in case.layers)
    (clause, most) = cost.bounds[0]
    most = {**most, "launches": most["launches"] + drafts, "device_to_device": most["device_to_device"] + more}
    return Cost("", (Bound(clause, most),))


def _kept(layer: Layer) -> int:
    """Count rows that a layer may move: the drafts, a ring's window twice, the context only if storage moves."""
    window: int | None = layer.config.window
    if window is not None:
        return layer.drafts + 2 * window
    return layer.drafts + (layer.live if layer.moved else 0)


abandon = bookkeeping
