"""A KV cache in plain numpy, with or without a sliding window, and its masks. It knows nothing of kvconform.

KV_SLIP=free in the environment plants a bug: `free` forgets to drop the rows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

SLIP = os.environ.get("KV_SLIP", "")


class Cache:
    """Keys `[batch, heads, rows, k_dim]` and values `[batch, heads, rows, v_dim]`, oldest row first.

    With a `window` of W rows a query sees itself and the W-1 rows before it, so that only these are kept.
    """

    def __init__(self, keys: Array, values: Array, window: int | None = None) -> None:
        """`keys` and `values` are empty arrays of the cache's dtype and shape, with zero rows."""
        if 0 in (*keys.shape[:2], keys.shape[3], values.shape[3]):
            raise ValueError("batch, heads and widths must be 1 or more")
        if window is not None and window < 1:
            raise ValueError("the window counts the query's own row: it must be 1 or more")
        self.window = window
        self.rows = keys, values
        self.offset = 0
        """Tokens appended and not rolled back: the position of the next one."""
        self.queries: int | None = None
        """Rows of the last append; None after any other change."""

    @property
    def held(self) -> int:
        """Rows that the cache holds."""
        return int(self.rows[0].shape[2])

    def append(self, keys: Array, values: Array) -> None:
        """Append n rows. Raises ValueError for rows of another geometry."""
        n = keys.shape[2]
        for old, new in zip(self.rows, (keys, values), strict=True) if n else ():
            if new.dtype != old.dtype or new.shape != (*old.shape[:2], n, old.shape[3]):
                raise ValueError(f"expected {n} rows like {old.dtype}{old.shape}, found {new.dtype}{new.shape}")
        if n:
            old_keys, old_values = self._newest()
            self.rows = np.concatenate([old_keys, keys], axis=2), np.concatenate([old_values, values], axis=2)
        self.offset += n
        self.queries = n

    def _newest(self) -> tuple[Array, Array]:
        """Give the rows that a next query may see."""
        first = 0 if self.window is None else max(0, self.held - (self.window - 1))
        keys, values = self.rows
        return keys[:, :, first:], values[:, :, first:]

    def history(self) -> tuple[Array, Array]:
        """Copy the rows that the queries of the last append attend to."""
        return self.rows[0].copy(), self.rows[1].copy()

    def view(self) -> tuple[Array, Array] | None:
        """Copy the rows that a next query may see; None where there are none."""
        keys, values = self._newest()
        return (keys.copy(), values.copy()) if keys.shape[2] else None

    def can_rewind(self, to: int) -> bool:
        """Tell whether all rows that position `to` needs are still there."""
        whole = self.window is None or self.offset <= self.window
        return to == self.offset or (whole and 0 <= to < self.offset)

    def rewind(self, to: int) -> None:
        """Drop the rows at and beyond position `to`. Raises ValueError where rows before it are gone."""
        if not self.can_rewind(to):
            raise ValueError(f"rewind to {to}: the offset is {self.offset}, the window {self.window}")
        if to < self.offset:
            self.rows = self.rows[0][:, :, :to], self.rows[1][:, :, :to]
        self.offset, self.queries = to, None

    def free(self) -> None:
        """Forget everything."""
        kept = self.held if SLIP == "free" else 0
        self.rows = self.rows[0][:, :, :kept], self.rows[1][:, :, :kept]
        self.offset, self.queries = 0, None

    def mask(self, causal: bool, windows: Sequence[int], arrays: Sequence[Array]) -> Array | None:
        """Make the mask for the last append, `[1 or batch, 1 or heads, queries, rows]`, with a column for each row
        of the history. It is boolean, True where a query may attend, or f32, added to the scores. None hides
        nothing.

        `arrays` are more masks of the same form; a query may attend where all allow it. Raises ValueError for a
        mask that does not fit.
        """
        if self.queries is None:
            raise ValueError("there is no append to mask")
        self._check(windows, arrays)
        row, query = np.arange(self.held), np.arange(self.held - self.queries, self.held)[:, None]
        parts = list(arrays)
        parts += [(row <= query)[None, None]] if causal else []
        parts += [(query - row < w)[None, None] for w in (*windows, *([self.window] if self.window else []))]
        return reduce(_both, parts) if parts else None

    def _check(self, windows: Sequence[int], arrays: Sequence[Array]) -> None:
        heads = {a.shape[1] for a in arrays if a.ndim == 4} - {1}
        for a in arrays:
            fits = a.ndim == 4 and a.shape[0] in (1, self.rows[0].shape[0]) and a.shape[2] == self.queries
            if not fits or a.shape[3] not in (1, self.held) or a.dtype not in (np.bool_, np.float32):
                raise ValueError(f"a mask of {a.dtype}{a.shape} does not fit {self.queries} queries")
        if len(heads) > 1 or 0 in heads or min(windows, default=1) < 1:
            raise ValueError("masks of different heads, or a window below 1")


def _both(a: Array, b: Array) -> Array:
    """Intersect two masks: *and*, a sum of scores, or scores with minus infinity where the other hides. In a sum
    minus infinity wins, even over plus infinity."""
    if a.dtype == b.dtype == bool:
        return a & b
    if a.dtype == b.dtype:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(np.isneginf(a) | np.isneginf(b), np.float32(-np.inf), a + b)
    seen, scores = (a, b) if a.dtype == bool else (b, a)
    return np.where(seen, scores, np.float32(-np.inf))
