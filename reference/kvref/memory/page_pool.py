"""The pool of a paged cache: pages of rows, and the number of block tables that have each page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kvref.cite import cite
from kvref.memory import forms, meter
from kvspec.contract import Pair
from kvspec.geometry import Config


class Run(NamedTuple):
    """Positions that lie in one page: which page, which of its slots, which positions."""

    page: int
    slots: slice
    positions: slice


class Pool:
    """Row s of head h of page p is `keys[p, h, s]` and `values[p, h, s]`; `counts[p]` tables have page p. In a form
    the last axis is that of the bytes of a row, so its scales go wherever its page goes."""

    def __init__(self, config: Config) -> None:
        self.config, self.counts, self.kept = config, [0] * config.pages, forms.Kept(config)
        self.size: int = config.page_size
        self.keys, self.values = (
            meter.allocated((config.pages, config.kv_heads, self.size, a.shape[-1]), a.dtype)
            for a in self.kept.none()
        )
        for page in range(config.pages):
            self._poison(page)

    @property
    def free(self) -> int:
        """Pages that no table has."""
        return self.counts.count(0)

    @property
    def nbytes(self) -> int:
        """Bytes of all pages."""
        self.kept.cite_bytes()
        return self.keys.nbytes + self.values.nbytes

    def entries(self, rows: int) -> int:
        """Pages that this many rows need."""
        return -(-rows // self.size)

    def take(self) -> int:
        """Give a table the lowest page that no table has."""
        cite("PAGE-12")
        page = self.counts.index(0)
        self.counts[page] = 1
        return page

    def share(self, table: Sequence[int]) -> None:
        """One table more has these pages."""
        for page in table:
            self.counts[page] += 1

    def give(self, table: Sequence[int]) -> None:
        """One table fewer has these pages."""
        for page in table:
            self.counts[page] -= 1
            if self.counts[page] == 0:
                self._poison(page)

    def _poison(self, page: int) -> None:
        """With debug, set every bit of a page: NaN in every dtype, and in every form."""
        if self.config.debug:
            cite("PAGE-34")
            for rows in (self.keys[page], self.values[page]):
                bits = np.dtype(f"u{rows.itemsize}")
                rows.view(bits)[...] = np.iinfo(bits).max

    def copied(self, page: int, rows: int) -> int:
        """Give back a shared page, and take a new one with copies of its first rows."""
        cite("PAGE-20")
        new = self.take()
        for array in (self.keys, self.values):
            meter.write(array[new][:, :rows], meter.resident(array[page][:, :rows]))
        self.give([page])
        return new

    def runs(self, table: Sequence[int], begin: int, end: int) -> Iterator[Run]:
        """The positions begin..end-1 of a table, page by page."""
        for i in range(begin // self.size, self.entries(end)):
            at, first, last = i * self.size, max(begin, i * self.size), min(end, (i + 1) * self.size)
            yield Run(table[i], slice(first - at, last - at), slice(first, last))

    def write(self, table: Sequence[int], begin: int, rows: Pair) -> None:
        """Put rows `[kv_heads, n, dim]`, as they are kept, at the positions from `begin` on."""
        for page, slots, positions in self.runs(table, begin, begin + rows.keys.shape[1]):
            part = slice(positions.start - begin, positions.stop - begin)
            meter.write(self.keys[page][:, slots], rows.keys[:, part])
            meter.write(self.values[page][:, slots], rows.values[:, part])

    def through(self, table: Sequence[int], n: int) -> Pair:
        """Copies of the first n rows, `[kv_heads, n, dim]`, on the host."""
        return Pair(*(meter.fetched(a) for a in self.seen(table, n)))

    def seen(self, table: Sequence[int], n: int) -> Pair:
        """The first n rows, `[kv_heads, n, dim]`, as a reader on the device finds them."""
        return self.kept.decoded(self.kept_rows(table, n))

    def kept_rows(self, table: Sequence[int], n: int) -> Pair:
        """The first n rows as they are kept."""
        whole = Pair(*(np.empty((a.shape[1], n, a.shape[3]), a.dtype) for a in (self.keys, self.values)))
        for page, slots, positions in self.runs(table, 0, n):
            whole.keys[:, positions] = self.keys[page][:, slots]
            whole.values[:, positions] = self.values[page][:, slots]
        return whole

    def page(self, page: int) -> Pair:
        """All slots of a page, `[kv_heads, page_size, dim]`."""
        return Pair(*(meter.fetched(a) for a in self.kept.decoded(Pair(self.keys[page], self.values[page]))))
