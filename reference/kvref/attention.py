"""Attention on growing caches and rings: append, then strict attention over the rows in position order."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvref import masks, meter, strict
from kvref.cite import cite
from kvref.rows import Rows, count
from kvspec.contract import Attention, Pair
from kvspec.errors import Refused
from kvspec.geometry import Array, Config
from kvspec.masks import Causal, Logical, Window


class Attending:
    """What a growing cache and a ring are as well: each knows the slots of its rows in position order."""

    config: Config
    rows: Rows
    offset: int

    def in_order(self) -> list[int]:
        """The slots of all rows held, oldest first."""
        raise NotImplementedError

    def held_after(self, n: int) -> int:
        """How many rows are held after an append of n rows."""
        raise NotImplementedError

    def append(self, keys: Array, values: Array) -> None:
        """Append rows."""
        raise NotImplementedError

    def attend(
        self,
        queries: Array,
        keys: Array,
        values: Array,
        how: Attention,
        out: Array | None = None,
        of: int | None = None,
    ) -> Array:
        """Append n rows, and have n queries `[B, heads, n, k_dim]` attend: the output `[B, heads, n, v_dim]`."""
        n = count(Pair(keys, values))
        demand(self.config, queries, n)
        windows = (Window(self.config.window),) if self.config.window else ()
        asked = asking(
            (*how.through, *windows), self.config.batch, queries.shape[1], n, self.held_after(n), self.offset + n
        )
        self.append(keys, values)
        slots = self.in_order()
        cite("ATTN-1")
        k, v = (np.asarray(a[:, :, slots]) for a in (self.rows.keys, self.rows.values))
        return given(out, strict.attend(np.asarray(queries), k, v, self.offset - len(slots), asked, how.splits))


def demand(config: Config, queries: Array, n: int) -> None:
    """Refuse queries that do not fit the cache."""
    fits = queries.ndim == 4 and queries.shape[::2] == (config.batch, n) and queries.shape[3] == config.k_dim
    if not fits or queries.shape[1] % config.kv_heads or queries.dtype != np.float32:
        raise Refused("ATTN-2", f"queries {queries.dtype} {queries.shape} do not fit")


def asking(logical: Logical, batch: int, heads: int, n: int, rows: int, end: int) -> strict.Asked:
    """What each of the n newest of `end` positions may see of the `rows` newest, through a mask."""
    mask = masks.in_position_order(logical, batch, n, rows)
    whole = np.zeros((batch, heads, n, rows))
    if mask is not None:
        whole += np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask
    position = np.arange(end - n, end)
    sizes = [p.size for p in logical if isinstance(p, Window)]
    low = np.maximum(0, position - min(sizes) + 1) if sizes else np.zeros(n, np.int64)
    causal = any(isinstance(p, Causal) for p in logical)
    return strict.Asked(whole, low, position + 1 if causal else np.full(n, end))


def given(out: Any, found: Array) -> Array:
    """The output where the caller wants it."""
    if out is None:
        return found
    meter.write(out, meter.resident(found))
    return np.asarray(out)
