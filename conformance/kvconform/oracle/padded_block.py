"""Padded blocks, as ragged caches are fed them: rows of unequal lengths, and NaN in the padding."""

from __future__ import annotations

import numpy as np

from kvspec.contract import Pair
from kvspec.geometry import Array, Config
from kvspec.operations.table import Operation, numbers_in, overridden
from kvspec.rows.book import SerialBook

Shapes = tuple[tuple[int, ...], tuple[int, ...]]
"""Of keys, and of values."""


class PaddedBlock:
    """The block of one operation on a cache of some config. Rows have their serials sequence after sequence.
    Columns that lengths claim and the block lacks have none."""

    def __init__(self, op: Operation, config: Config) -> None:
        self.op, self.config = op, config
        lengths = numbers_in(op["lengths"])
        said = op.get("n")
        self.columns = max([0, *lengths]) if said is None else said
        self.sequences = len(lengths) if op.get("batch") is None else op["batch"]
        self.lengths = [min(max(0, n), self.columns) for n in lengths]

    @property
    def total(self) -> int:
        """The rows of all sequences."""
        return sum(self.lengths)

    def rows(self, book: SerialBook) -> Pair:
        """Keys and values `[sequences, kv_heads, n, dim]`."""
        op = {name: value for name, value in self.op.items() if name not in ("batch", "values")}
        made = book.rows(op, self.config.changed(batch=1), self.total)
        return Pair(*(self._block(a, columns) for a, columns in zip(made, self._columns(), strict=True)))

    def _columns(self) -> tuple[int, int]:
        values = self.op.get("values")
        return self.columns, self.columns if values is None else values

    def _block(self, rows: Array, columns: int) -> Array:
        _, heads, _, dim = rows.shape
        block = np.full((self.sequences, heads, columns, dim), np.nan, rows.dtype)
        ends = np.cumsum([0, *self.lengths]).tolist()
        for s, end in enumerate(ends[1 : self.sequences + 1]):
            own = rows[0, :, ends[s] : end][:, :columns]
            first = columns - own.shape[1] if self.config.padding == "left" else 0
            block[s, :, first : first + own.shape[1]] = own
        return block

    def shapes(self) -> Shapes:
        """The shapes of keys and of values."""
        config, (keys, values) = overridden(self.config, self.op), self._columns()
        heads = max(0, config.kv_heads)
        of_keys = self.sequences, heads, keys, max(0, config.k_dim)
        return of_keys, (self.sequences, heads, values, max(0, config.v_dim))
