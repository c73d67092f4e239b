"""A cache of several layers: its drafts, its offset and states, and what the queries of each layer see."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.geometry import Array
from kvspec.operations.table import Operation, numbers_in
from kvspec.session.state import SessionState, call, offered
from kvspec.session.step import Inputs, Step


def look(session: SessionState, cache: Any, step: Step, which: str = "") -> None:
    """Observe the offset, and the state of layers that have one; and right after an append or
    a branch the history of each layer, and the masks of all of them."""
    if "offset" in session.observe:
        step.values[f"offset{which}"] = int(cache.lengths().offset)
    session.held(cache, step, which)
    if "fold" in session.observe:
        for layer, state in cache.states().items():
            session.note(step, f"fold.{layer}{which}", state)
    if not cache.queries:
        return
    if "history" in session.observe:
        _histories(session, cache, step)
    if "sees" in session.observe:
        session.note(step, "mask", cache.mask())


def _histories(session: SessionState, cache: Any, step: Step) -> None:
    """Note the rows that each layer shows its queries, with NaN behind them up to the widest layer's."""
    session.wait()
    pairs = [[session.keep(array) for array in pair] for pair in cache.histories()]
    widest = max(keys.shape[2] for keys, _ in pairs if keys is not None)
    for layer, pair in enumerate(pairs):
        for part, array in zip("kv", pair, strict=True):
            step.arrays[f"history.{layer}.{part}"] = None if array is None else _padded(array, widest)


def _padded(rows: Array, width: int) -> Array:
    """Make rows `[1, kv_heads, n, dim]` this wide."""
    batch, heads, n, dim = rows.shape
    wide = np.full((batch, heads, width, dim), np.nan, rows.dtype)
    wide[:, :, :n] = rows
    return wide


def branch(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Hand in drafts, each behind another."""
    do, rows, on = offered(cache, "branch"), session.handed(op, inputs), op.get("on")
    with session.metered(step):
        do(*rows, *([] if on is None else [numbers_in(on)]))
    session.wait()


DO = {"branch": branch, "settle": call("settle", "draft")}
