"""Paged rows as plain array code keeps them: a pool, and tables of indices to take pages by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kvprofile.operation import Job
from kvprofile.peers.host_arrays import Rows
from kvprofile.random_rows import turns
from kvprofile.workloads.page import pages_for, partly
from kvspec.geometry import Array


class Pool:
    """Keys and values `[pages, kv_heads, page, dim]`, and tables `[sequences, pages]`: scattered over the first
    half of the pool, and behind the context over the other half."""

    def __init__(self, rows: Rows, sequences: int = 0) -> None:
        case, model = rows.case, rows.case.model
        self.rows, self.size, each = rows, case.page or 1, pages_for(case)
        self.count = sequences or turns(rows.memory, case.context * case.config().row_bytes)
        half, order = self.count * each, np.random.default_rng(7)
        self.pool = rows.pairs((2 * half, model.kv_heads, self.size), 1)[0]
        parts = [first + order.permutation(half).reshape(self.count, each) for first in (0, half)]
        self.tables: Array = np.concatenate(parts, axis=1)

    def index(self, entries: Array) -> Any:
        """Make indices in the form that the library wants."""
        return self.rows.library.wrap(np.ascontiguousarray(entries, np.int64))

    def places(self, sequence: int, at: int, n: int) -> tuple[Any, Any]:
        """Make indices of the pages and slots of n positions."""
        positions = np.arange(at, at + n)
        return self.index(self.tables[sequence][positions // self.size]), self.index(positions % self.size)

    def write(self, places: tuple[Any, Any], new: tuple[Any, Any]) -> None:
        """Write rows `[1, kv_heads, n, dim]` to their pages and slots."""
        pages, slots = places
        for pool, rows in zip(self.pool, new, strict=True):
            pool[pages, :, slots] = rows[0].swapaxes(0, 1)

    def gathered(self, table: Any) -> list[Any]:
        """Gather keys and values `[1, kv_heads, n, dim]` of all pages of a table into new memory."""
        taken = [self.rows.library.take(pool, table).swapaxes(0, 1) for pool in self.pool]
        return [pages.reshape(1, pages.shape[0], -1, pages.shape[3]) for pages in taken]

    def contexts(self) -> list[Any]:
        """Give the table of each context."""
        return [self.index(table[: pages_for(self.rows.case)]) for table in self.tables]


def append(rows: Rows) -> Job:
    """Write rows behind the context, by indices of pages and slots."""
    case, pool, sources = rows.case, Pool(rows), rows.caches(rows.case.rows, 64, 1)
    runs = max(1, case.context // case.rows)

    def do(i: int) -> None:
        at = case.context + i // pool.count % runs * case.rows
        pool.write(pool.places(i % pool.count, at, case.rows), sources[i % len(sources)])

    return Job(do)


def gather(rows: Rows) -> Job:
    """Take pages by a table and put their rows in order. That is two copies, and on a GPU a third one to the
    host."""
    pool = Pool(rows)
    tables = pool.contexts()
    return Job(lambda i: [rows.library.landed(a) for a in pool.gathered(tables[i % len(tables)])])


def fork(rows: Rows) -> Job:
    """Copy the rows of a page to another and write a row behind them."""
    case, pool, sources = rows.case, Pool(rows), rows.caches(1, 64, 1)
    last, held = pages_for(case), partly(case)

    def do(i: int) -> None:
        table, new = pool.tables[i % pool.count], sources[i % len(sources)]
        old, to = int(table[last - 1]), int(table[last + i // pool.count % last])
        for pages, row in zip(pool.pool, new, strict=True):
            pages[to, :, :held] = pages[old, :, :held]
            pages[to, :, held] = row[0, :, 0]

    return Job(do)


def attend(rows: Rows) -> Job:
    """Write rows at their indices, which are there before, take the pages by the table, then attend."""
    case, pool, sources = rows.case, Pool(rows), rows.caches(rows.case.rows, 64, 1)
    asked, tables = rows.queries(), pool.contexts()
    places = [pool.places(sequence, case.context - case.rows, case.rows) for sequence in range(pool.count)]

    def do(i: int) -> Any:
        pool.write(places[i % pool.count], sources[i % len(sources)])
        keys, values = pool.gathered(tables[i % pool.count])
        return rows.library.attend(asked, keys[:, :, : case.context], values[:, :, : case.context])

    return Job(do)


def attend_ragged(rows: Rows) -> Job:
    """The same for each sequence of a batch of unequal lengths, one after the other."""
    case, lengths, sources = rows.case, rows.case.lengths, rows.one().caches(1, 64, 1)
    groups = turns(rows.memory, sum(lengths) * case.config().row_bytes)
    pool, asked = Pool(rows, groups * len(lengths)), rows.queries()
    tables = [pool.index(pool.tables[s, : -(-n // pool.size)]) for s, n in enumerate(groups * lengths)]
    places = [pool.places(s, n - 1, 1) for s, n in enumerate(groups * lengths)]

    def do(i: int) -> None:
        for s, n in enumerate(lengths):
            sequence = i % groups * len(lengths) + s
            pool.write(places[sequence], sources[i % len(sources)])
            keys, values = pool.gathered(tables[sequence])
            rows.library.attend(asked[s : s + 1], keys[:, :, :n], values[:, :, :n])

    return Job(do)


WORK: dict[str, Callable[[Rows], Job]] = {
    "page append": append,
    "gather": gather,
    "fork": fork,
    "paged attention": attend,
    "ragged paged attention": attend_ragged,
}
"""The work of each operation."""
