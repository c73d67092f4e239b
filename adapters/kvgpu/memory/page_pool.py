"""The pool of a paged cache on a device: pages in one block, the list of free ones, reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from heapq import heappop, heappush
from itertools import groupby

import numpy as np

from kvgpu.memory.buffers import LINE, Rows, Workspace
from kvgpu.memory.by_hand import ENTRY
from kvgpu.memory.layout import Geometry, Place, move, replace
from kvgpu.memory.pages_by_hand import PagesByHand
from kvgpu.memory.row_forms import Codec
from kvgpu.runtime import EACH, Block, Started, Work, completed, prepared
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config

PAGE = "q"
"""The kind of integer that an array of pages has."""

COUNT = np.dtype(PAGE)
"""The same for numpy."""

ONE = np.int64(1)
"""One table: numpy adds it sooner than Python's 1."""

BEGINS = 3, 6, 7
"""The integers of the launch that say the first position, and where packed keys and values begin."""


class Pool:
    """Head h of page g begins `(g * kv_heads + h) * page_size` rows behind the pool's first row. As all rows, these
    are poisoned until written. Only the host knows which pages are free, and how many `tables` have each page.
    `spare` is the memory of tables that are gone."""

    def __init__(self, space: Workspace, config: Config) -> None:
        assert config.pages is not None and config.page_size is not None
        self.space, self.config = space, config
        self.size: int = config.page_size
        self.geometry, self.codec = Geometry.of(config), Codec(space, config)
        self.rows = Rows(space.runtime, Geometry.of(config.changed(batch=config.pages)), config.page_size)
        self.total, self.free = config.pages, list(range(config.pages))
        self.tables: Array = np.zeros(config.pages, COUNT)
        self.spare: list[Block] = []
        if config.debug:
            self._poison(0, config.pages)

    @cached_property
    def by_hand(self) -> PagesByHand:
        """Give what the host may do itself."""
        return PagesByHand(self.space.runtime, self.geometry, self.rows.place, self.total)

    def pages_for(self, rows: int) -> int:
        """Count the pages for this many rows."""
        return (rows + self.size - 1) // self.size

    def table(self, pages: Sequence[int], of: Block | None = None) -> Block:
        """Give a table of these pages, which begins a table `of` others if one is given. It has room for every
        page, in memory that nobody has any longer if there is such."""
        made = self.spare.pop() if self.spare else self.space.runtime.allocate(self.total * ENTRY.itemsize)
        by_hand, count = self.by_hand, len(pages)
        if count and not (by_hand.number(made, 0, pages) if of is None else by_hand.follow(made, of, count)):
            self.space.runtime.upload(np.array(pages, ENTRY), made)
        return made

    def take(self, count: int) -> list[int]:
        """Take the lowest free pages, each for one table; the caller has checked that enough are free."""
        taken = [heappop(self.free) for _ in range(count)]
        for page in taken:
            self.tables[page] = 1
        return taken

    def share(self, table: Sequence[int]) -> None:
        """Add a table to these pages, of which no two are the same."""
        pages = np.asarray(table, COUNT)
        counts = self.tables[pages]
        counts += ONE
        self.tables[pages] = counts

    def shared(self, page: int) -> bool:
        """Tell whether several tables have a page."""
        return bool(self.tables.item(page) > 1)

    def give(self, table: Sequence[int]) -> None:
        """Remove a table from these pages, of which no two are the same. Pages without a table become free, and are
        poisoned if asked for."""
        pages = np.asarray(table, COUNT)
        self.tables[pages] -= 1
        freed: list[int] = pages[self.tables[pages] == 0].tolist()
        for page in freed:
            heappush(self.free, page)
        if self.config.debug:
            for first, count in runs(sorted(freed)):
                self._poison(first, count)

    def _poison(self, first: int, count: int) -> None:
        """Set every bit of these adjacent pages; one launch."""
        page = self.config.kv_heads * self.size
        keys, values = page * count * self.geometry.k_bytes, page * count * self.geometry.v_bytes
        place = self.page(first)
        work = Work(LINE, -(-(keys + values) // LINE))
        self.space.runtime.launch("poison", work, place.keys, LINE, place.keys_at, keys, place.values_at, values)

    def page(self, page: int) -> Place:
        """Give the slots of one page."""
        whole, rows = self.rows.place, page * self.config.kv_heads * self.size
        keys_at = whole.keys_at + rows * self.geometry.k_bytes
        return replace(whole, keys_at=keys_at, values_at=whole.values_at + rows * self.geometry.v_bytes)

    def parted(self, page: int, rows: int) -> int:
        """Take a page in place of a shared one, of which a table is removed: the first rows are copied to it."""
        taken = heappop(self.free)
        self.copy(page, taken, rows)
        self.tables[taken] = 1
        self.tables[page] -= ONE
        return taken

    def copy(self, page: int, to: int, rows: int) -> None:
        """Copy the first rows of one page to another; one launch."""
        if not self.by_hand.copy(page, to, rows):
            move(self.space.runtime, self.geometry, rows, self.page(page).span(), self.page(to).span())

    def number(self, table: Block, first: int, pages: Sequence[int]) -> None:
        """Write entries of a block table on the device, from `first` on; one launch for each run of pages."""
        for page, count in () if self.by_hand.number(table, first, pages) else runs(pages):
            self.space.runtime.launch("number", Work(1, count), table, first, count, page)
            first += count

    def scatter(self, rows: Place, table: Block, first: int) -> None:
        """Copy packed rows to the pages of a table, from position `first` on; one launch."""
        if rows.slots > 1 or not self.by_hand.put(table, first, rows):
            self._through(rows, table, first, gather=False)

    def gathered(self, table: Block, n: int) -> Pair:
        """Download the first n rows of a table, `[kv_heads, n, dim]`; one launch."""
        if self.space.checks:
            self.rows.check_guards()
        if n == 0:
            return self.nothing()
        if self.config.form is not None:
            return self._fetched(self.shown(table, n))
        rows = self.space.outgoing(self.geometry, n)
        self._through(rows, table, 0, gather=True)
        return self._fetched(rows)

    def kept(self, table: Block, n: int) -> Place:
        """Give the first n rows of a table as they are kept, packed; one launch."""
        rows = self.space.outgoing(self.geometry, n)
        if n:
            self._through(rows, table, 0, gather=True)
        return rows

    def shown(self, table: Block, n: int) -> Place:
        """Give the first n rows of a table as they are read, of pages in a form; two launches."""
        rows = self.space.other(self.geometry, n)
        self._through(rows, table, 0, gather=True)
        return self.codec.decoded(rows, n)

    def nothing(self) -> Pair:
        """Make empty rows."""
        return Pair(*(np.empty(self.config.shape(kind, 0)[1:], DTYPES[self.config.dtype]) for kind in "kv"))

    def _through(self, rows: Place, table: Block, first: int, gather: bool) -> None:
        word, held = self.geometry.word, self.rows.block
        blocks = rows.keys, rows.values, held, held, table
        args = *blocks, first, rows.keys_at // word, rows.values_at // word
        if gather or rows.slots > 1:
            kernel, work, numbers = self._launch(rows.slots, gather)
            self.space.runtime.launch(kernel, work, *completed(numbers, BEGINS, args))
        else:
            self._write_row(*args)
        self.space.runtime.meter.device_to_device += rows.slots * self.geometry.row_bytes

    @cached_property
    def _write_row(self) -> Started:
        """Write one row: as that is done for every token, its launch is prepared."""
        return prepared(self.space.runtime, *self._launch(1, gather=False), BEGINS)

    def _launch(self, n: int, gather: bool) -> tuple[str, Work, tuple[int, ...]]:
        """Give the kernel that moves n rows, its work, and its integers."""
        pages, heads, word, widths = self.rows.place, self.config.kv_heads, self.geometry.word, self.geometry.widths
        where = EACH, EACH, pages.keys_at // word, pages.values_at // word, self.size
        return f"page{word}", Work(max(widths), n, heads, 2), (int(gather), heads, n, EACH, *widths, *where)

    def peek(self, page: int) -> Pair:
        """Download a page's raw content, `[kv_heads, page_size, dim]`."""
        if self.space.checks:
            self.rows.check_guards()
        lying = self.page(page)
        return self._fetched(lying if self.config.form is None else self.codec.decoded(lying, self.size))

    def _fetched(self, rows: Place) -> Pair:
        """Download all slots of a place with adjacent heads."""
        return Pair(
            self._whole("k", rows.keys, rows.keys_at, rows.slots),
            self._whole("v", rows.values, rows.values_at, rows.slots),
        )

    def _whole(self, kind: str, block: Block, at: int, slots: int) -> Array:
        dtype, shape = DTYPES[self.config.dtype], self.config.shape(kind, slots)[1:]
        found = self.space.runtime.download(block, at, int(np.prod(shape)) * dtype.itemsize)
        rows: Array = found.view(dtype).reshape(shape)
        return rows


def runs(pages: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Give the pages as runs of successive numbers: the first of each run, and its length."""
    for _, run in groupby(enumerate(pages), lambda each: each[1] - each[0]):
        numbers = [page for _, page in run]
        yield numbers[0], len(numbers)
