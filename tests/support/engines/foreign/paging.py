"""PAGE over Python objects: a page is a list of rows, a block table a list of pages, and Python counts who has one.

Written from the text of the chapter alone. A page that no table has is free. Pages have no numbers, so there is
nothing to `gather` or to `peek`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES
from support.engines.foreign.demands import want, want_rows, want_sizes


class Sequence:
    """A block table and a length."""

    def __init__(self, table: list[list[Any]], length: int) -> None:
        self.table, self.length = table, length


class Pool:
    """All sequences."""

    def __init__(self, config: Any) -> None:
        want_sizes(config, "page_size", "pages")
        want(config.batch == 1 and config.debug in (None, 1), f"batch {config.batch}, debug {config.debug}")
        self.config, self.all = config, dict[int, Sequence]()

    def _of(self, sequence: int) -> Sequence:
        want(sequence in self.all, f"no sequence {sequence}")
        return self.all[sequence]

    def holders(self) -> list[Sequence]:
        """All that have pages."""
        return list(self.all.values())

    def _pages(self, n: int) -> int:
        return -(-n // self.config.page_size)

    def _add(self, sequence: Sequence) -> int:
        number = next(i for i in range(len(self.all) + 1) if i not in self.all)
        self.all[number] = sequence
        return number

    def admit(self) -> int:
        """A sequence without rows."""
        return self._add(Sequence([], 0))

    def fork(self, sequence: int, n: int) -> int:
        """One that has the same pages."""
        of = self._of(sequence)
        want(0 <= n <= of.length, f"{n} rows of {of.length}")
        return self._add(Sequence(of.table[: self._pages(n)], n))

    def append(self, keys: Any, values: Any, sequence: int = 0) -> None:
        """Fill the last page, or a copy of it if another sequence has it, then new ones."""
        if keys.shape[2] == 0:
            return
        of, size = self._of(sequence), self.config.page_size
        want_rows(self.config, keys, values, 1)
        n, used = keys.shape[2], of.length % size
        copied = used > 0 and sum(page is of.table[-1] for s in self.holders() for page in s.table) > 1
        want(self._pages(of.length + n) - len(of.table) + copied <= self.free_pages(), "no free page")
        if used:
            of.table[-1] = of.table[-1][:used] if copied else of.table[-1]
            del of.table[-1][used:]
        for i in range(n):
            if (of.length + i) % size == 0:
                of.table.append([])
            of.table[-1].append((keys[0, :, i].copy(), values[0, :, i].copy()))
        of.length += n

    def truncate(self, sequence: int, to: int) -> None:
        """Forget rows, and pages without rows."""
        of = self._of(sequence)
        want(0 <= to <= of.length, f"{to} of {of.length} rows")
        of.length = to
        del of.table[self._pages(to) :]

    def drop(self, sequence: int) -> None:
        """Forget a sequence."""
        self._of(sequence)
        del self.all[sequence]

    def sequences(self) -> list[int]:
        """The length of each, -1 for a number that is not in use."""
        return [self.all[i].length if i in self.all else -1 for i in range(max(self.all, default=-1) + 1)]

    def read_sequence(self, sequence: int) -> Pair:
        """The rows of a sequence."""
        of, config = self._of(sequence), self.config
        rows = [row for page in of.table for row in page][: of.length]
        blank = (np.zeros((config.kv_heads, 0, dim), DTYPES[config.dtype]) for dim in (config.k_dim, config.v_dim))
        return Pair(*(np.stack(side, 1) for side in zip(*rows, strict=True))) if rows else Pair(*blank)

    def free_pages(self) -> int:
        """Pages that no sequence has."""
        return int(self.config.pages) - len({id(page) for s in self.holders() for page in s.table})


class Lists:
    """The adapter."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        claim = {"level": "visible", "without": ["gather", "peek"]}
        return {"name": "lists-of-lists", "chapters": {"page": claim}}

    def open(self, kind: str, config: Any) -> Pool:
        """A fresh pool."""
        if kind != "page":
            raise Unsupported(f"no kind {kind}")
        return Pool(config)
