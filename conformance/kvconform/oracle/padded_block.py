"""Padded blocks, as ragged caches are fed them: rows of unequal lengths, and NaN or numbers in the padding."""

from __future__ import annotations

import numpy as np

from kvspec.contract import Pair
from kvspec.geometry import Array, Config
from kvspec.operations.table import Operation, argument, numbers_in, overridden
from kvspec.rows.book import SerialBook

NUMBERS = 0.0, 64.0
"""What stands in padding that holds no NaN: keys that every query scores as 0, and values larger than any row's."""

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
        padding = NUMBERS if argument(self.op, "beside") == "numbers" else (np.nan, np.nan)
        each = zip(made, self._columns(), padding, strict=True)
        return Pair(*(self._block(*block) for block in each))

    def _columns(self) -> tuple[int, int]:
        values = self.op.get("values")
        return self.columns, self.columns if values is None else values

    def _block(self, rows: Array, columns: int, padding: float) -> Array:
        _, heads, _, dim = rows.shape
        block = np.full((self.sequences, heads, columns, dim), padding, rows.dtype)
        ends = np.cumsum([0, *self.lengths]).tolist()
        for s, end in enumerate(ends[1 : self.sequences + 1]):
            own = rows[0, :, ends[s] : end][:, :columns]
            first = columns - own.shape[1] if self.config.padding == "left" else 0
            block[s, :, first : first + own.shape[1]] = own
        return block

    def queries(self) -> tuple[int, ...]:
        """The shape of the queries that ask for each column."""
        own = {"q_batch": self.sequences, "heads": self.config.kv_heads}
        own |= {"q_rows": self.columns, "q_dim": self.config.k_dim}
        return tuple(max(0, size if self.op.get(name) is None else self.op[name]) for name, size in own.items())

    def shapes(self) -> Shapes:
        """The shapes of keys and of values."""
        config, (keys, values) = overridden(self.config, self.op), self._columns()
        heads = max(0, config.kv_heads)
        of_keys = self.sequences, heads, keys, max(0, config.k_dim)
        return of_keys, (self.sequences, heads, values, max(0, config.v_dim))
