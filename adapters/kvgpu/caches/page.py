"""Paged caches on a device: the host has the block tables, and the device a copy that the kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from operator import index
from typing import Any

import numpy as np

from kvgpu.caches import mem, parted, rope, scored
from kvgpu.caches.attention import Pages as Lying
from kvgpu.caches.attention import Positions, Runs, in_form, prepare
from kvgpu.caches.queries import Fit, asked, demand, empty, nothing
from kvgpu.caches.transfers import Table, Transfers
from kvgpu.memory import row_forms
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.by_hand import ENTRY
from kvgpu.memory.cache_rows import Fitting, acceptable, rows_in
from kvgpu.memory.page_pool import Pool
from kvspec.contract import Attention, Pair
from kvspec.geometry import Config
from kvspec.refusals import common as refusals
from kvspec.refusals import page as refusals_page


class Pages(Transfers):
    """A pool and its sequences. The host decides everything; the device is only told where to copy."""

    kind = "page"

    def __init__(self, config: Config, space: Workspace) -> None:
        wrong = config.page_size is None or config.pages is None or config.batch != 1
        if wrong or not acceptable(config) or (config.debug or 1) > 1:
            raise refusals_page.config("CACHE-3", config)
        row_forms.demand(config)
        super().__init__()
        self.config, self.space, self.pool = config, space, Pool(space, config)
        self._fitting = Fitting(config)
        self.numbered: list[Table | None] = []
        self._unused: list[int] = []

    def _open(self, table: Table) -> int:
        """Give a table the lowest number that is not in use."""
        number = heappop(self._unused) if self._unused else len(self.numbered)
        self.numbered[number : number + 1] = [table]
        return number

    def _demand(self, sequence: int) -> Table:
        table = self.numbered[sequence] if 0 <= sequence < len(self.numbered) else None
        if table is None:
            raise refusals_page.sequence("PAGE-4", sequence)
        return table

    def admit(self) -> int:
        """A new sequence of no rows."""
        return self._open(Table(self.pool, (), 0))

    def fork(self, sequence: int, n: int) -> int:
        """A new sequence with the first pages of another; its table is uploaded, and no row moves."""
        table = self._demand(sequence)
        if n < 0 or n > table.length:
            raise refusals_page.fork("PAGE-16", n, sequence, table.length)
        pages = table.pages[: self.pool.pages_for(n)]
        number = self._open(Table(self.pool, pages, n, table))
        self.pool.share(pages)
        return number

    def append(self, keys: Any, values: Any, sequence: int = 0) -> None:
        """Write rows `[1, kv_heads, n, dim]` to the pages of a sequence: one launch, after one for each copied
        page and one for each run of new pages in the table."""
        n = rows_in(keys)
        if n == 0:
            return
        table = self._demand(sequence)
        new, copied = self._demand_room(table, keys, values, n)
        source = self.pool.codec.staged(keys, values)
        if new or copied:
            table.extend(self.pool, new, copied)
        self.pool.scatter(source, table.there, table.length)
        table.length += n

    def _demand_room(self, table: Table, keys: Any, values: Any, n: int) -> tuple[int, bool]:
        """Count the pages that n new rows need, and tell whether the last page has to be copied before."""
        if not self._fitting(keys, values):
            raise refusals.rows("CACHE-2", self.config, keys, values)
        pool, pages = self.pool, table.pages
        room, free = len(pages) * pool.size - table.length, len(pool.free)
        new = 0 if n <= room else pool.pages_for(n - room)
        copied = room > 0 and pool.shared(pages[-1])
        if new > free:
            raise refusals_page.full("PAGE-13", n, new, free)
        if copied and new == free:
            raise refusals_page.no_copy("PAGE-21", n, new, free)
        return new, copied

    def truncate(self, sequence: int, to: int) -> None:
        """Make a sequence shorter; nothing is launched, unless pages are poisoned."""
        table = self._demand(sequence)
        if to < 0 or to > table.length:
            raise refusals_page.truncate("CACHE-7", to, sequence, table.length)
        self._shorten(table, to)

    def _shorten(self, table: Table, to: int) -> None:
        kept = self.pool.pages_for(to)
        gone, table.length = table.pages[kept:], to
        del table.pages[kept:]
        self.pool.give(gone)

    def drop(self, sequence: int) -> None:
        """Drop a sequence; another one gets the memory of its table."""
        table = self._demand(sequence)
        self._shorten(table, 0)
        self.pool.spare.append(table.there)
        self.numbered[sequence] = None
        heappush(self._unused, sequence)
        while self.numbered and self.numbered[-1] is None:
            del self.numbered[-1]

    def sequences(self) -> list[int]:
        """The length of each sequence, -1 at numbers that are not in use."""
        return [-1 if table is None else table.length for table in self.numbered]

    def read_sequence(self, sequence: int) -> Pair:
        """Download the rows of a sequence, `[kv_heads, n, dim]`."""
        table = self._demand(sequence)
        return self.pool.gathered(table.there, table.length)

    def table(self, sequence: int) -> list[int]:
        """The pages of a sequence, in order."""
        return self._demand(sequence).pages.tolist()

    def references(self) -> list[int]:
        """The number of tables that have each page of the pool."""
        return self.pool.tables.tolist()  # type: ignore[no-any-return]

    def free_pages(self) -> int:
        """Count the pages that no sequence has."""
        return len(self.pool.free)

    def gather(self, table: Sequence[int], n: int) -> Pair:
        """Upload this table, and download n rows through it: one launch. Raises TypeError if an entry or n is no
        whole number."""
        table, n = list(map(index, table)), index(n)
        self._demand_rows(table, n)
        if n == 0:
            return self.pool.nothing()
        needed = np.array(table[: self.pool.pages_for(n)], ENTRY)
        block = self.space.scratch("table", needed.nbytes)
        self.space.runtime.upload(needed, block)
        return self.pool.gathered(block, n)

    def _demand_rows(self, table: Sequence[int], n: int) -> None:
        """Refuse rows in this order: a negative number or more than the table has slots, entries that name no page,
        rows that no sequence has.
        """
        size, needed = self.pool.size, self.pool.pages_for(n)
        if n < 0 or n > len(table) * size:
            raise refusals_page.short("PAGE-30", n, len(table), size)
        for entry, page in enumerate(table[:needed]):
            if page < 0 or page >= self.pool.total:
                raise refusals_page.entry("PAGE-31", entry, page, self.pool.total)
        live = self._live()
        for entry, page in enumerate(table[:needed]):
            rows, there = min(size, n - entry * size), live.get(page, 0)
            if rows > there:
                raise refusals_page.dead("PAGE-32", page, rows, there)

    def _live(self) -> dict[int, int]:
        """The rows that sequences have in each page in use."""
        found: dict[int, int] = {}
        for table in self.numbered:
            for entry, page in enumerate([] if table is None else table.pages):
                assert table is not None
                rows = min(self.pool.size, table.length - entry * self.pool.size)
                found[page] = max(rows, found.get(page, rows))
        return found

    def peek(self, page: int) -> Pair:
        """Download all slots of a page."""
        if page < 0 or page >= self.pool.total:
            raise refusals_page.peek("PAGE-35", page, self.pool.total)
        if self.config.debug is None:
            raise refusals_page.no_debug("PAGE-36")
        return self.pool.peek(page)

    def plan(self, n: int) -> mem.Plan:
        """The bytes held, which no append changes."""
        return self.held(), self.held()

    def held(self) -> int:
        """Bytes of all pages; tables do not count."""
        return self.pool.rows.nbytes

    def attend(
        self, queries: Any, keys: Any, values: Any, how: Attention, out: Any = None, of: int | None = None
    ) -> Any:
        """Append n rows to a sequence, and have n queries `[1, heads, n, k_dim]` attend through its table: two
        launches more than an append."""
        if nothing(queries, keys):
            return empty(self.config, queries, out)
        sequence = of or 0
        table, n = self._demand(sequence), rows_in(keys)
        self._demand_room(table, keys, values, n)
        end = table.length + n
        demand(self.config, Fit((1,), n, end), queries, how, out)
        rope.demand_attend(how.rope, self.config)
        plain = self.config.changed(form=None)
        asking = parted.hiding(how, asked(how.through), n, end)
        ready = prepare(self.space, plain, queries, asking, how.splits, end, out, how.sinks)
        begin = table.length
        ready, keys, values = rope.at_positions(self.space, self.config, how.rope, ready, keys, values, begin)
        ready = scored.by(self.space, how, ready, end)
        ready = parted.by(self.space, how, ready, end)
        self.append(keys, values, sequence)
        if (formed := in_form(ready, self.config)) is not None:
            return formed.answer(self._lying(table), Positions(0, end))
        return ready.answer(self._readable(table), Positions(0, end))

    def _lying(self, table: Table) -> Lying:
        """Say where the rows of a sequence lie."""
        return Lying(self.pool.rows.place, self.config.kv_heads * self.pool.size, table.there)

    def _readable(self, table: Table) -> Lying | Runs:
        """Say where the rows of a sequence lie as they are read: rows in a form are decoded to another place."""
        heads = self.config.kv_heads
        if self.config.form is None:
            return self._lying(table)
        return Runs(self.pool.shown(table.there, table.length), heads * table.length)
