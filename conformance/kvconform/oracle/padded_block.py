"""Padded blocks, as ragged caches are fed them: rows of unequal lengths, and NaN in the padding."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from kvref.list_model.rows import Rows
from kvspec.contract import Pair
from kvspec.geometry import Array, Config
from kvspec.operations.table import Operation, argument, numbers_in, overridden
from kvspec.rows.book import SerialBook


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

    def named(self, book: SerialBook, made: Pair | None) -> Pair:
        """The same for the list model: the serials of each sequence, and the shapes of the arrays."""
        config = overridden(self.config, self.op)
        ends = (book.next + np.cumsum([0, *self.lengths])).tolist()
        serials = [list(range(a, b)) for a, b in pairwise(ends)]
        dims, arrays = (config.k_dim, config.v_dim), made or (None, None)
        fill = argument(self.op, "fill")
        shapes = [
            (self.sequences, max(0, config.kv_heads), n, max(0, dim))
            for n, dim in zip(self._columns(), dims, strict=True)
        ]
        keys, values = (
            Rows(serials, shape, config.dtype, fill, a) for shape, a in zip(shapes, arrays, strict=True)
        )
        return Pair(keys, values)  # type: ignore[arg-type]
