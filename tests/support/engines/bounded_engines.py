"""Static caches as engines have them, in numpy, and faults planted in them; each judged through `from_update`."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvadapters.update import UpdateAdapter, from_update
from kvspec.geometry import Config


class StaticCache:
    """One buffer of all slots, which `update` hands out as a copy; the rest of it is zeros."""

    SPARE = 0.0
    """What an unwritten slot holds."""

    def __init__(self, config: Config) -> None:
        if config.max_len is None or config.max_len < 1 or config.step < 1:
            raise ValueError("a cache holds one row or more")
        self.config, self.room, self.length = config, config.max_len, 0
        self.rows: list[Any] = []

    def update(self, *new: Any) -> tuple[Any, Any]:
        n = self.checked(*new)
        if not self.rows:
            self.rows = [np.full((*a.shape[:2], self.room, a.shape[3]), self.SPARE, a.dtype) for a in new]
        for rows, added in zip(self.rows, new, strict=True):
            rows[:, :, self.length : self.length + n] = added
        self.length += n
        return self.handed()

    def checked(self, *new: Any) -> int:
        """How many rows there are. Raises ValueError for rows that do not fit."""
        n = new[0].shape[2]
        shapes = [self.config.shape(kind, n) for kind in "kv"]
        if [a.shape for a in new] != shapes or len({a.dtype.name for a in (*new, *self.rows)}) > 1:
            raise ValueError("rows of another geometry")
        if self.length + n > self.room:
            raise ValueError("the cache is full")
        return int(n)

    def handed(self) -> tuple[Any, Any]:
        keys, values = (rows.copy() for rows in self.rows)
        return keys, values

    def mask(self, n: int) -> Any:
        return np.arange(self.room) <= np.arange(self.length, self.length + n)[:, None]

    def trim(self, n: int) -> None:
        if not 0 <= n <= self.length:
            raise ValueError(f"cannot trim {n} of {self.length}")
        self.length -= n


class OnlyItsRows(StaticCache):
    """Hands out the live rows alone."""

    def handed(self) -> tuple[Any, Any]:
        keys, values = (rows[:, :, : self.length].copy() for rows in self.rows)
        return keys, values

    def mask(self, n: int) -> Any:
        return super().mask(n)[:, : self.length + n]


class PoisonedBehind(StaticCache):
    """Its unwritten slots are NaN, behind a mask that fits."""

    SPARE = np.nan


class ShowsItsBuffer(StaticCache):
    """A single query sees every slot."""

    def mask(self, n: int) -> Any:
        return super().mask(n) if n > 1 else None


class HandsOutHalf(StaticCache):
    """Hands out one slot less than the buffer has, where that is more than the rows."""

    def handed(self) -> tuple[Any, Any]:
        end = max(self.length, self.room - 1)
        keys, values = (rows[:, :, :end].copy() for rows in self.rows)
        return keys, values

    def mask(self, n: int) -> Any:
        return super().mask(n)[:, : max(self.length + n, self.room - 1)]


class CountsFirst(StaticCache):
    """Adds to its length before it looks for room."""

    def checked(self, *new: Any) -> int:
        try:
            return super().checked(*new)
        except ValueError:
            self.length = min(self.room, self.length + 1)
            raise


class GivesNoLastSlot(StaticCache):
    """Refuses the row that would make it full."""

    def checked(self, *new: Any) -> int:
        n = super().checked(*new)
        if n and self.length + n == self.room:
            raise ValueError("the cache is full")
        return n


def adapter(make: Any, masked: bool = True) -> UpdateAdapter:
    """What a static cache offers, as `from_update` takes it; its mask is asked before the update."""
    return from_update(
        make.__name__,
        kind="bounded",
        make=make,
        update=lambda cache, keys, values: cache.update(keys, values),
        length=lambda cache: cache.length,
        trim=lambda cache, n: cache.trim(n),
        mask=(lambda cache, n: cache.mask(n)) if masked else None,
        also=("batch", "scribble"),
    )


right, unmasked, only_its_rows = adapter(StaticCache), adapter(StaticCache, masked=False), adapter(OnlyItsRows)
poisoned, poisoned_unmasked = adapter(PoisonedBehind), adapter(PoisonedBehind, masked=False)
shows_its_buffer, hands_out_half = adapter(ShowsItsBuffer), adapter(HandsOutHalf)
counts_first, no_last_slot = adapter(CountsFirst), adapter(GivesNoLastSlot)
