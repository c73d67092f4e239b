"""Masks for a history with slots in any order.

Symbolic parts are computed from the position in each slot. Explicit arrays come in position order; if the slots are
in another order, the device puts their columns in slot order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvgpu.memory.buffers import Workspace
from kvgpu.memory.layout import Geometry
from kvspec.geometry import Array
from kvspec.masks import Causal, Explicit, Logical, Part, Window
from kvspec.refusals import common as refusals


@dataclass(frozen=True)
class History:
    """What the last append left: batch, queries, rows in the state, and the slot of the oldest row."""

    batch: int
    queries: int
    rows: int
    oldest: int = 0


def built(space: Workspace, logical: Logical, history: History) -> Array | None:
    """Make a mask `[1 or B, 1 or heads, L, K or 1]`, columns in slot order; None if nothing has to be hidden."""
    demand(logical, history)
    mask: Array | None = None
    for part in logical:
        found = _columns(space, part, history)
        if found is not None:
            mask = found if mask is None else _both(mask, found)
    return mask


def demand(logical: Logical, history: History) -> None:
    """Refuse arrays that do not fit the history, or each other; then windows below 1."""
    arrays = [part.array for part in logical if isinstance(part, Explicit)]
    for array in arrays:
        _demand_fit(array, history)
    _demand_heads(arrays, history)
    for part in logical:
        if isinstance(part, Window) and part.size <= 0:
            raise refusals.mask_window("MASK-13", part.size)


def _demand_fit(array: Array, history: History) -> None:
    wrong = array.ndim != 4 or array.dtype not in (np.dtype(bool), np.dtype(np.float32))
    if wrong or array.shape[0] not in {1, history.batch} or array.shape[2] != history.queries:
        raise refusals.mask_shape("MASK-13", array, history.batch, history.queries)
    if array.shape[3] not in {1, history.rows}:
        raise refusals.mask_width("MASK-12", array.shape[3], history.rows)


def _demand_heads(arrays: list[Array], history: History) -> None:
    """Heads are 1, or the same number in every array that has more."""
    several = {array.shape[1] for array in arrays if array.shape[1] != 1}
    if len(several) > 1 or 0 in several:
        raise refusals.mask_shape("MASK-13", arrays[-1], history.batch, history.queries)


def _columns(space: Workspace, part: Part, history: History) -> Array | None:
    if isinstance(part, Explicit):
        return _slot_order(space, part.array, history)
    if history.queries == 0 or (isinstance(part, Causal) and history.queries == 1):
        return None
    age = _ages(history)
    return (age >= 0 if isinstance(part, Causal) else age < part.size)[None, None]


def _ages(history: History) -> Array:
    """Count, as `[L, K]`, the positions from each slot's row up to each query; below 0 is the future."""
    newest = (history.oldest - 1 - np.arange(history.rows)) % max(1, history.rows)
    return np.asarray(newest - np.arange(history.queries)[::-1, None])


def _slot_order(space: Workspace, array: Array, history: History) -> Array:
    """A copy with columns in slot order: logical column 0 goes to the slot of the oldest row."""
    rows = history.rows
    if array.shape[3] == 1 or history.oldest == 0 or array.size == 0:
        return array.copy()
    geometry = Geometry(array.size // rows, array.itemsize, 0)
    source = space.staged(geometry, array.reshape(-1, rows, 1)).span(turn=rows - history.oldest)
    target = space.straightened(geometry, rows, source)
    found = space.runtime.download(target.place.keys, target.place.keys_at, array.nbytes)
    return found.view(array.dtype).reshape(array.shape)


def _both(one: Array, other: Array) -> Array:
    """Join two masks. Booleans join by `and`. Scores are added; minus infinity stays minus infinity. A boolean and
    scores give the scores, and minus infinity where the boolean hides."""
    if one.dtype == other.dtype:
        with np.errstate(all="ignore"):
            return np.asarray(one & other if one.dtype == bool else _hiding(one + other, one, other))
    visible, scores = (one, other) if one.dtype == bool else (other, one)
    return np.where(visible, scores, np.float32("-inf"))


def _hiding(added: Array, one: Array, other: Array) -> Array:
    """Hide a sum of scores where either is minus infinity, even if the other one is plus infinity by overflow."""
    return np.where(np.minimum(one, other) == -np.inf, np.float32("-inf"), added)
