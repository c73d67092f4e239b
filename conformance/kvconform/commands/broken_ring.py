"""The cache that `kvconform demo` judges: a rotating ring, written as engines write theirs, with one bug.

Can you see it? `kvconform demo` can.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvadapters.update import from_update
from kvspec.geometry import DTYPES, Config


class RotatingCache:
    """A window of rows in a buffer that is reused: a single row takes the slot of the oldest."""

    def __init__(self, config: Config) -> None:
        sizes = (config.batch, config.kv_heads, config.k_dim, config.v_dim, config.window)
        if not config.window or not all(size and size > 0 for size in sizes):
            raise ValueError("every size is one or more")
        self.empty: list[Any] = [np.zeros(config.shape(kind, 0), DTYPES[config.dtype]) for kind in ("k", "v")]
        self.window = config.window
        self.reset()

    def reset(self) -> None:
        """Drop all rows."""
        self.rows, self.offset, self.cursor = self.empty, 0, 0

    def update(self, *new: Any) -> tuple[Any, Any]:
        """Append keys and values `[B, H, n, dim]`; give what the queries of these rows attend to."""
        if any(a.shape[:2] != b.shape[:2] or a.dtype != b.dtype for a, b in zip(self.empty, new, strict=True)):
            raise ValueError("rows of another geometry")
        if new[0].shape[2] != new[1].shape[2]:
            raise ValueError("as many keys as values")
        n = new[0].shape[2]
        self.rows = self._overwritten(new) if n == 1 else self._appended(new)
        self.offset += n
        keys, values = (a[:, :, : self.offset] for a in self.rows)
        return keys, values

    def _overwritten(self, new: Any) -> list[Any]:
        """One row: in the slot of the oldest, in a buffer of the window's size."""
        size = self.rows[0].shape[2]
        spare = [(0, 0), (0, 0), (0, max(0, self.window - size)), (0, 0)]
        rows = [np.pad(a, spare)[:, :, -self.window :].copy() for a in self.rows]
        self.cursor = (self.cursor - max(0, size - self.window)) % self.window
        for a, b in zip(rows, new, strict=True):
            a[:, :, self.cursor] = b[:, :, 0]
        self.cursor += 1
        return rows

    def _appended(self, new: Any) -> list[Any]:
        """Several rows: the newest W-1 in the order of their positions, then the new ones."""
        held = self.cursor if self.offset <= self.window else self.rows[0].shape[2]
        old = [np.roll(a[:, :, :held], -self.cursor, axis=2) for a in self.rows]
        rows = [
            np.concatenate([a[:, :, max(0, held - self.window + 1) :], b], axis=2)
            for a, b in zip(old, new, strict=True)
        ]
        self.cursor = rows[0].shape[2]
        return rows

    def mask(self, n: int) -> Any:
        """The mask of the next n rows: no query sees the future, or beyond its window."""
        if n == 1:
            return np.ones((1, min(self.offset + 1, self.window)), bool)
        kept = min(self.offset, self.window - 1)
        query, column = np.arange(kept, kept + n)[:, None], np.arange(kept + n)
        return (column <= query) & (column > query - self.window)

    def trim(self, n: int) -> None:
        """Take back the newest n rows, such as drafts that were rejected."""
        if n and not 0 < n <= self.offset <= self.window:
            raise ValueError(f"cannot take back {n} of {self.offset} rows")
        self.offset -= n


ring = from_update(
    "broken-ring",
    kind="ring",
    make=RotatingCache,
    update=lambda cache, keys, values: cache.update(keys, values),
    length=lambda cache: cache.offset,
    trim=lambda cache, n: cache.trim(n),
    mask=lambda cache, n: cache.mask(n),
    reset=lambda cache: cache.reset(),
    said={"version": "1.0"},
)
