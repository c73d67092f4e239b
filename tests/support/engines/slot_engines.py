"""Rings of twice their window that hand out all slots, with the mask by position; judged through `from_update`."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvadapters.update import from_update
from kvspec.geometry import DTYPES


class Slots:
    """Writes keys, then values: where the values do not fit, keys lie in slots that no mask shows."""

    SHOWN = 0
    """The lowest position that a mask shows; slots that were never written are of position -1."""

    def __init__(self, config: Any) -> None:
        if config.window < 1:
            raise ValueError("a window of one row or more")
        self.window, slots = config.window, 2 * config.window
        self.rows = [np.zeros(config.shape(kind, slots), DTYPES[config.dtype]) for kind in "kv"]
        self.positions, self.offset = np.full(slots, -1), 0

    def update(self, keys: Any, values: Any) -> Any:
        n, slots = keys.shape[2], len(self.positions)
        if n > self.window:
            raise ValueError("more rows than the window")
        at = np.arange(self.offset, self.offset + n)
        for rows, new in zip(self.rows, (keys, values), strict=True):
            if new.shape != (*rows.shape[:2], n, rows.shape[3]) or new.dtype != rows.dtype:
                raise ValueError("rows of another geometry")
            rows[:, :, at % slots] = new
        self.positions[at % slots] = at
        self.offset += n
        return self.rows[0], self.rows[1]

    def make_mask(self, n: int) -> Any:
        query = np.arange(self.offset - n, self.offset)[:, None]
        seen = (self.positions >= self.SHOWN) & (self.positions <= query)
        return seen & (self.positions > query - self.window)


class ShowsUnwritten(Slots):
    """Its mask shows slots that were never written."""

    SHOWN = -1


def adapter(name: str, cache: type[Slots]) -> Any:
    return from_update(
        name,
        kind="ring",
        make=cache,
        update=lambda cache, keys, values: cache.update(keys, values),
        length=lambda cache: cache.offset,
        mask=lambda cache, n: cache.make_mask(n),
        dialect={"ring.chunk": "window", "mask.made": "after"},
    )


slots = adapter("slots", Slots)
shows_unwritten = adapter("shows-unwritten", ShowsUnwritten)
