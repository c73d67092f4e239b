"""A ragged cache that is a list of rows for each sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hostile.attacks.designs.rows import Row, arrays_of, check, demand, rows_of
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config, fits


class ListRagged:
    """A ragged cache that is a list of rows for each sequence, of which a window shows the newest; blocks are made
    when somebody asks."""

    kind = "ragged"

    def __init__(self, config: Config) -> None:
        check(config, "padding")
        self.config, self.left = config, config.padding == "left"
        self._become([[] for _ in range(config.batch)])

    def _become(self, rows: list[list[Row]]) -> None:
        self.rows = [list(each) for each in rows]
        self.fed: Array | None = None

    def feed(self, keys: Array, values: Array, lengths: Sequence[int]) -> None:
        """Add to each sequence the columns that it owns."""
        config, n = self.config.changed(batch=len(self.rows)), keys.shape[2] if keys.ndim == 4 else 0
        demand(fits(config, Pair(keys, values)) and len(lengths) == len(self.rows), "another block")
        demand(all(0 <= own <= n for own in lengths), "no such columns")
        self.fed = np.full((len(lengths), n), -1)
        for s, own in enumerate(lengths):
            columns = slice(n - own, n) if self.left else slice(0, own)
            self.fed[s, columns] = range(len(self.rows[s]), len(self.rows[s]) + own)
            self.rows[s] += rows_of(Pair(keys[s][:, columns], values[s][:, columns]))

    def trim(self, counts: Sequence[int]) -> None:
        """Drop the newest rows of each."""
        demand(len(counts) == len(self.rows), "a count for each sequence")
        demand(all(0 <= n <= len(each) for n, each in zip(counts, self.rows, strict=True)), "too many")
        outgrown = [self.config.window is not None and len(each) > self.config.window for each in self.rows]
        demand(not any(n and past for n, past in zip(counts, outgrown, strict=True)), "some may be gone")
        self._become([each[: len(each) - n] for n, each in zip(counts, self.rows, strict=True)])

    def filter(self, order: Sequence[int]) -> None:
        """These, in this order."""
        demand(bool(order) and all(0 <= s < len(self.rows) for s in order), "no such sequence")
        self._become([self.rows[s] for s in order])

    def reorder(self, order: Sequence[int]) -> None:
        """As many, from these."""
        demand(len(order) == len(self.rows), "as many as there are")
        self.filter(order)

    def repeat(self, times: int) -> None:
        """Each several times."""
        demand(times >= 1, "not at all")
        self._become([each for each in self.rows for _ in range(times)])

    def extend(self, other: Any) -> None:
        """The sequences of another behind these."""
        names = ("kv_heads", "k_dim", "v_dim", "dtype", "window")
        same = isinstance(other, ListRagged)
        demand(same and all(getattr(other.config, n) == getattr(self.config, n) for n in names), "another cache")
        self._become(self.rows + other.rows)

    def sequences(self) -> list[int]:
        """The length of each."""
        return [len(each) for each in self.rows]

    def read_sequence(self, sequence: int) -> Pair:
        """The rows of one that its next query would see."""
        rows, window = self.rows[sequence], self.config.window
        return arrays_of(rows if window is None else rows[max(0, len(rows) - window + 1) :], self.config)

    def holds(self) -> list[int]:
        """All that there are."""
        return self.sequences()

    def positions(self) -> Array | None:
        """Where the columns fed last stand."""
        return self.fed

    def starts(self) -> list[int]:
        """Where each begins in a block."""
        width = max(self.sequences())
        return [width - len(each) if self.left else 0 for each in self.rows]

    def history(self) -> Pair:
        """A block, padded with zeros."""
        config, width = self.config.changed(batch=len(self.rows)), max(self.sequences())
        block = Pair(*(np.zeros(config.shape(kind, width), DTYPES[config.dtype]) for kind in "kv"))
        for s, start in enumerate(self.starts()):
            for array, rows in zip(block, arrays_of(self.rows[s], self.config), strict=True):
                array[s, :, start : start + len(self.rows[s])] = rows
        return block

    def mask(self) -> Array:
        """Each query sees its own sequence up to itself, and no further back than its window."""
        assert self.fed is not None
        queries = self.fed[:, :, None]
        place = np.arange(max(self.sequences())) - np.array(self.starts())[:, None, None]
        oldest = np.maximum(0, queries + 1 - (self.config.window or 1 << 31))
        return np.asarray((place >= oldest) & (place <= queries))[:, None]
