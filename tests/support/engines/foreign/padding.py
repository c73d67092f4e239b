"""RAGGED over lists: each sequence is a list of rows, and a block is made when it is asked for. A window is only
what queries are shown.

Written from the text of the chapter alone, beside growing caches and rings that are lists too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, WORDS
from support.engines.foreign.demands import want, want_rows, want_sizes
from support.engines.foreign.remembering import Remembering

FAR = 1 << 31
"""More rows than any sequence has."""

Row = tuple[Any, Any]
"""A key `[heads, k_dim]` and a value."""


def alike(a: Any, b: Any) -> bool:
    """Whether rows of one cache fit another."""
    return (a.kv_heads, a.k_dim, a.v_dim, a.dtype, a.window) == (b.kv_heads, b.k_dim, b.v_dim, b.dtype, b.window)


def answer(query: Any, rows: Sequence[Row], group: int) -> Any:
    """What a query `[heads, k_dim]` makes of rows, in float64."""
    keys, values = (np.repeat(np.stack([r[i] for r in rows]).astype(float), group, axis=1) for i in (0, 1))
    scores = np.einsum("hd,nhd->nh", query.astype(float), keys) / np.sqrt(query.shape[1])
    weights = np.exp(scores - scores.max(0))
    return np.einsum("nh,nhd->hd", weights / weights.sum(0), values)


class Batch:
    """Sequences in an order."""

    def __init__(self, config: Any) -> None:
        want_sizes(config, "step")
        want(config.padding in WORDS["padding"], f"padding {config.padding}")
        want(config.window is None or config.window >= 1, f"window {config.window}")
        self.config, self.left = config, config.padding == "left"
        self.all: list[list[Row]] = [[] for _ in range(config.batch)]
        self.fed: tuple[list[int], int] | None = None

    def owned(self, length: int, n: int) -> range:
        """The columns of a block that are a sequence's own."""
        return range(n - length, n) if self.left else range(length)

    def feed(self, keys: Any, values: Any, lengths: Sequence[int]) -> None:
        """Append each sequence's own columns."""
        want_rows(self.config, keys, values, len(self.all))
        n = keys.shape[2]
        fits = len(lengths) == len(self.all) and all(0 <= length <= n for length in lengths)
        want(fits, f"lengths {lengths} of {n} columns")
        for s, length in enumerate(lengths):
            self.all[s] += [(keys[s, :, i].copy(), values[s, :, i].copy()) for i in self.owned(length, n)]
        self.fed = list(lengths), n

    def attend_block(self, queries: Any, keys: Any, values: Any, lengths: Sequence[int]) -> Any:
        """Feed, and answer each column that is a row by the list of its sequence's rows."""
        want_rows(self.config, keys, values, len(self.all))
        n, heads, kv_heads = keys.shape[2], queries.shape[1], self.config.kv_heads
        want(queries.shape == (len(self.all), heads, n, self.config.k_dim), "queries of another shape")
        want(heads > 0 and heads % kv_heads == 0 and queries.dtype == np.float32, "queries of other heads")
        self.feed(keys, values, lengths)
        output = np.full((*queries.shape[:3], self.config.v_dim), np.nan, np.float32)
        for s, length in enumerate(lengths):
            for i, column in enumerate(self.owned(length, n)):
                end = len(self.all[s]) - length + i + 1
                rows = self.all[s][max(0, end - (self.config.window or FAR)) : end]
                output[s, :, column] = answer(queries[s, :, column], rows, heads // kv_heads)
        return output

    def trim(self, counts: Sequence[int]) -> None:
        """Drop the newest rows."""
        fits = len(counts) == len(self.all) and all(0 <= c <= len(s) for c, s in zip(counts, self.all, strict=True))
        want(fits, f"counts {counts}")
        most = self.config.window or FAR
        want(not any(c and len(s) > most for c, s in zip(counts, self.all, strict=True)), "a row that may be gone")
        self.put([rows[: len(rows) - count] for rows, count in zip(self.all, counts, strict=True)])

    def put(self, sequences: Sequence[Sequence[Row]]) -> None:
        """Have these sequences from now on."""
        self.all, self.fed = [list(rows) for rows in sequences], None

    def filter(self, order: Sequence[int]) -> None:
        """Keep some."""
        want(len(order) > 0 and all(0 <= s < len(self.all) for s in order), f"order {order}")
        self.put([self.all[s] for s in order])

    def reorder(self, order: Sequence[int]) -> None:
        """Keep as many as there are."""
        want(len(order) == len(self.all), f"order {order}")
        self.filter(order)

    def repeat(self, times: int) -> None:
        """Copies side by side."""
        want(times >= 1, f"{times} times")
        self.put([rows for rows in self.all for _ in range(times)])

    def extend(self, other: Any) -> None:
        """The sequences of another one too."""
        want(isinstance(other, Batch) and alike(other.config, self.config), "not such a batch")
        self.put([*self.all, *other.all])

    def join(self, others: Sequence[Any]) -> None:
        """The rows of growing caches or rings, each as a sequence."""
        for other in others:
            self.want_single(other)
        self.put([[(key[0], value[0]) for key, value in other.rows] for other in others])

    def want_single(self, other: Any) -> None:
        """Refuse anything but a cache of one such sequence: a growing one, or over a window a ring."""
        kind = "growing" if self.config.window is None else "ring"
        right = isinstance(other, Remembering) and other.kind == kind
        want(right and other.config.batch == 1 and alike(other.config, self.config), f"not such a {kind} cache")

    def extract(self, sequence: int, into: Any) -> None:
        """A growing cache, or a ring, of the rows of one."""
        want(0 <= sequence < len(self.all), f"no sequence {sequence}")
        self.want_single(into)
        into.free()
        into.rows = [(key[None], value[None]) for key, value in self.all[sequence]]
        into.written = bool(into.rows)

    def sequences(self) -> list[int]:
        """The length of each."""
        return [len(rows) for rows in self.all]

    def stacked(self, rows: Sequence[Row], width: int | None = None) -> Pair:
        """Rows as arrays `[heads, n, dim]`, padded with NaN to a width."""
        found, config = [], self.config
        for side, dim in enumerate((config.k_dim, config.v_dim)):
            n = len(rows) if width is None else width
            block = np.full((config.kv_heads, n, dim), np.nan, DTYPES[config.dtype])
            for column, row in zip(self.owned(len(rows), n), rows, strict=True):
                block[:, column] = row[side]
            found.append(block)
        return Pair(*found)

    def read_sequence(self, sequence: int) -> Pair:
        """The rows of one that its next query would see."""
        rows, most = self.all[sequence], (self.config.window or FAR) - 1
        return self.stacked(rows[max(0, len(rows) - most) :])

    def holds(self) -> list[int]:
        """All that there ever were."""
        return self.sequences()

    def positions(self) -> Any:
        """Of the columns of the last block."""
        if self.fed is None:
            return None
        lengths, n = self.fed
        found = np.full((len(lengths), n), -1, np.int64)
        for s, length in enumerate(lengths):
            found[s, self.owned(length, n)] = range(len(self.all[s]) - length, len(self.all[s]))
        return found

    def width(self) -> int:
        """Columns of the block that is handed out: some more than there have to be."""
        return max(map(len, self.all)) + 2

    def history(self) -> Pair:
        """All sequences side by side."""
        blocks = [self.stacked(rows, self.width()) for rows in self.all]
        return Pair(*(np.stack(side) for side in zip(*blocks, strict=True)))

    def starts(self) -> list[int]:
        """The column of each sequence's first row."""
        return [self.width() - len(rows) if self.left else 0 for rows in self.all]

    def mask(self) -> Any:
        """What each query sees: its own sequence's rows up to its own, and no further back than its window."""
        queries, column = self.positions()[:, :, None], np.arange(self.width())
        place = (column - np.array(self.starts())[:, None])[:, None]
        oldest = np.maximum(0, queries + 1 - (self.config.window or FAR))
        return ((place >= oldest) & (place <= queries))[:, None]


class Padded:
    """The adapter."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        return {"name": "padded-lists", "chapters": dict.fromkeys(("growing", "ring", "ragged"), "visible")}

    def open(self, kind: str, config: Any) -> Any:
        """A fresh cache."""
        if kind not in ("growing", "ring", "ragged"):
            raise Unsupported(f"no kind {kind}")
        return Batch(config) if kind == "ragged" else Remembering(kind, config)
