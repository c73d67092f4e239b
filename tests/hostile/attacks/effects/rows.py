"""Changes of arrays of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hostile.attacks.effects.effect import Alter
from hostile.attacks.triggers.contents import like_before
from hostile.attacks.wrapper import Event
from kvspec.geometry import Array


def along(axis: str, order: Callable[[int], list[int]]) -> Alter:
    """Take the parts along an axis in another order."""

    def alter(array: Array, letters: str, event: Event) -> Array:
        at = letters.index(axis)
        return np.take(array, order(array.shape[at]), axis=at) if array.shape[at] else array

    return alter


def last_from(before: int) -> Callable[[int], list[int]]:
    """Each part as it is, but the last is a copy of one before it."""
    return lambda n: [*range(n - 1), max(0, n - 1 - before)]


def doubled(array: Array, letters: str, event: Event) -> Array:
    """Twice the last row."""
    made, at = array.copy(), letters.find("n")
    part: Any = slice(None) if at < 0 else (*[slice(None)] * at, slice(-1, None))
    with np.errstate(all="ignore"):
        made[part] = made[part] + made[part]
    return made


def stale(array: Array, letters: str, event: Event) -> Array:
    """The last row is that of the operation before, if it had such rows."""
    before = [a for a in event.life.newest if a.ndim == array.ndim and a.dtype == array.dtype]
    at = letters.find("n")
    for old in before:
        if at < 0 and old.shape == array.shape:
            return old.copy()
        same = (
            at >= 0 and old.shape[at] and np.delete(old.shape, at).tolist() == np.delete(array.shape, at).tolist()
        )
        if same and array.shape[at]:
            return np.concatenate([np.delete(array, -1, axis=at), np.take(old, [-1], axis=at)], axis=at)
    return array


def emptied(array: Array, letters: str, event: Event) -> Array:
    """The last row is zeros."""
    made, at = array.copy(), letters.find("n")
    made[(*[slice(None)] * max(at, 0), slice(-1, None))] = 0
    return made


def unwritten(n: int) -> Alter:
    """Rows that are equal to the n before them are zeros."""

    def alter(array: Array, letters: str, event: Event) -> Array:
        made, like = array.copy(), like_before(event, n)
        if len(like) == array.shape[letters.index("n")]:
            made[(*[slice(None)] * letters.index("n"), like)] = 0
        return made

    return alter


ROWS: dict[str, tuple[str, str, Alter]] = {
    "the last row is the one before": ("wrong row", "n", along("n", last_from(1))),
    "the last row is the first": ("wrong row", "n", along("n", lambda n: [*range(n - 1), 0])),
    "the last row is zeros": ("wrong row", "n", emptied),
    "rows like the one before are zeros": ("wrong row", "n", unwritten(1)),
    "rows like the two before are zeros": ("wrong row", "n", unwritten(2)),
    "rows like the five before are zeros": ("wrong row", "n", unwritten(5)),
    "the last head is the one before": ("wrong head", "h", along("h", last_from(1))),
    "the last head is the first": ("wrong head", "h", along("h", last_from(64))),
    "the last sequence is the one before": ("wrong sequence", "b", along("b", last_from(1))),
    "the last sequence is the first": ("wrong sequence", "s", along("s", last_from(64))),
    "the last layer is the one before": ("wrong sequence", "l", along("l", last_from(1))),
    "all rows one place on": ("position", "n", along("n", lambda n: [n - 1, *range(n - 1)])),
    "the last two rows change places": (
        "order",
        "n",
        along("n", lambda n: [*range(n - 2), *range(n - 1, max(-1, n - 3), -1)]),
    ),
    "the last row is doubled": ("scale", "d", doubled),
    "the last row is stale": ("stale row", "d", stale),
    "the last row is missing": ("length", "n", along("n", lambda n: list(range(n - 1)))),
}
"""Changes of arrays of rows: their sort, the axis that they need, and what they do."""
