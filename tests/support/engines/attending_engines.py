"""A small engine that attends, in numpy, and faults planted in it; each by `kvadapters.attending`."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvadapters.attending import AttendingAdapter, attending, scores
from kvadapters.update import from_update
from support.engines.foreign import rotating


class Cache:
    """Rows that are joined."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def update(self, *new: Any) -> tuple[Any, Any]:
        self.rows = [np.concatenate(both, 2) for both in zip(self.rows, new, strict=True)] if self.rows else [*new]
        return self.rows[0], self.rows[1]

    def length(self) -> int:
        return self.rows[0].shape[2] if self.rows else 0


def attend(cache: Any, queries: Any, keys: Any, values: Any, how: Any, later: int = 0) -> Any:
    """softmax(q k + mask) v, in float64; with `later` each query sees so many rows of the future."""
    group, n = queries.shape[1] // keys.shape[1], queries.shape[2]
    k, v = (a.astype(np.float64).repeat(group, 1) for a in (keys, values))
    added = scores(how.through, n + later, keys.shape[2] + later)[..., later:, : keys.shape[2]]
    found = queries.astype(np.float64) @ k.swapaxes(2, 3) * queries.shape[3] ** -0.5 + added
    weights = np.exp(found - found.max(3, keepdims=True))
    return (weights @ v / weights.sum(3, keepdims=True)).astype(np.float32)


def engine(attends: Any = attend, turns: Any = rotating.turned) -> AttendingAdapter:
    plain = from_update(
        "attending", kind="growing", make=lambda config: Cache(), update=Cache.update, length=Cache.length
    )
    return attending(plain, attends, (), turns, ("rotate", "linear"))


right = engine()
sees_the_future = engine(lambda *given: attend(*given, later=1))
turns_from_zero = engine(turns=lambda rows, at, rope: rotating.turned(rows, at - at[:1], rope))
