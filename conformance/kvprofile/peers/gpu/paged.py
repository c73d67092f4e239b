"""Attention through block tables by libraries that need no gathered rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from kvprofile.operation import Job
from kvprofile.peers.host_arrays import Library, Rows
from kvprofile.peers.page import Pool
from kvprofile.random_rows import turns
from kvprofile.workloads.page import pages_for
from kvspec.geometry import Array

PAGE = 16
"""Rows of a page, where a case has none."""


class Batch(NamedTuple):
    """Sequences to attend to at once: their tables `[B, pages]`, and the rows that their last queries see `[B]`, of
    which the last `new` are written first."""

    tables: Array
    lengths: Array
    new: int

    def cut(self, pages: int) -> Batch:
        """Give the same with tables of this many pages, in the dtype of a device."""
        return Batch(self.tables[:, :pages].astype(np.int32), self.lengths.astype(np.int32), self.new)


class Plan(NamedTuple):
    """A batch, and what a library prepared for it."""

    batch: Batch
    made: Any


class PagedLibrary(Library, Protocol):
    """A library that attends through block tables. A pool is keys and values `[pages, kv_heads, page, dim]`."""

    def plan(self, batch: Batch, rows: Rows) -> Plan:
        """Prepare what is ready before the clock runs: tables and lengths on the device."""

    def append_pages(self, pool: tuple[Any, Any], plan: Plan, new: tuple[Any, Any]) -> None:
        """Write rows `[B, kv_heads, n, dim]` to the last positions of their sequences."""

    def attend_pages(self, queries: Any, pool: tuple[Any, Any], plan: Plan) -> Any:
        """Attend causally with queries `[B, heads, n, dim]`: the last sees all rows of its sequence."""


def attend(rows: Rows) -> Job:
    """Write rows to their pages, then attend through the table, sequence by sequence."""
    case, pool = rows.case, Pool(rows)
    return _attend(rows, pool, [Batch(table[None], np.array([case.context]), case.rows) for table in pool.tables])


def attend_ragged(rows: Rows) -> Job:
    """Write a row of each sequence of a batch to its page, then attend to all of them at once."""
    lengths = rows.case.lengths
    groups = turns(rows.memory, sum(lengths) * rows.case.config().row_bytes)
    pool = Pool(rows, groups * len(lengths))
    batches = np.split(pool.tables, groups)
    return _attend(rows, pool, [Batch(tables, np.array(lengths), 1) for tables in batches])


def _attend(rows: Rows, pool: Pool, batches: Sequence[Batch]) -> Job:
    library, asked, sources = cast(PagedLibrary, rows.library), rows.queries(), rows.caches(rows.case.rows, 64, 1)
    plans = [library.plan(batch.cut(pages_for(rows.case)), rows) for batch in batches]

    def do(i: int) -> Any:
        plan = plans[i % len(plans)]
        library.append_pages(pool.pool, plan, sources[i % len(sources)])
        return library.attend_pages(asked, pool.pool, plan)

    return Job(do)


def attend_in_place(rows: Rows, held: int, new: int) -> Job:
    """Write rows to the end of those that are held, keys and values at once, and attend to all of them."""
    library, asked, batch = cast(PagedLibrary, rows.library), rows.queries(), rows.case.batch
    caches, sources = rows.caches(held), rows.caches(new, 64, 1)
    plan = library.plan(_whole(batch, [held] * batch, new), rows)

    def do(i: int) -> Any:
        cache = caches[i % len(caches)]
        library.append_pages(cache, plan, sources[i % len(sources)])
        return library.attend(asked, *cache)

    return Job(do)


def attend_to_lengths(rows: Rows) -> Job:
    """Attend to a batch of unequal lengths at once."""
    library, asked, caches = cast(PagedLibrary, rows.library), rows.queries(), rows.caches(rows.case.context)
    plan = library.plan(_whole(rows.case.batch, rows.case.lengths), rows)
    return Job(lambda i: library.attend_pages(asked, caches[i % len(caches)], plan))


def _whole(batch: int, lengths: Sequence[int], new: int = 0) -> Batch:
    """Make a batch whose sequences are each a page of its own: all rows of an array."""
    return Batch(np.arange(batch, dtype=np.int32)[:, None], np.array(lengths, np.int32), new)


def attend_in_order(rows: Rows, lengths: Sequence[int], new: int = 0) -> Job:
    """Write the last rows of a batch, if there are any, and attend to it at once. Each sequence has pages one
    behind the other: rows in one piece, for a library that takes batches in pages alone."""
    case, library, asked = rows.case, cast(PagedLibrary, rows.library), rows.queries()
    each = -(-max(lengths) // PAGE)
    caches = rows.pairs((case.batch * each, case.model.kv_heads, PAGE), 256)
    tables = np.arange(case.batch * each, dtype=np.int32).reshape(case.batch, each)
    plan = library.plan(Batch(tables, np.array(lengths, np.int32), new), rows)
    sources = rows.caches(new, 64, 1) if new else []

    def do(i: int) -> Any:
        cache = caches[i % len(caches)]
        if new:
            library.append_pages(cache, plan, sources[i % len(sources)])
        return library.attend_pages(asked, cache, plan)

    return Job(do)
