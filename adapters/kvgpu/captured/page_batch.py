"""A batch of the sequences of a paged cache: whole pages are shared with it, and new ones come from its pool.

Each sequence has its next page in reserve, and the step itself writes that page to the table. So the host acts only
when a sequence has filled its reserve: it gives every sequence a new one, with one upload. That is one upload in as
many steps as a page has slots.
"""

from __future__ import annotations

import numpy as np

from kvgpu.caches.page import Pages
from kvgpu.captured.pool_batch import NOBODY, PoolBatch
from kvgpu.memory.by_hand import ENTRY
from kvspec.contract import Pair
from kvspec.refusals import common as refusals
from kvspec.refusals import page as refusals_page

NONE = -1
"""Stands for no page in reserve."""


class PageBatch(PoolBatch):
    """Sequences in the pages of `cache`, which has the heads of all layers. Each may have `max_len` rows."""

    def __init__(self, cache: Pages, layers: int, sequences: int, max_len: int) -> None:
        heads, rest = divmod(cache.config.kv_heads, layers)
        if rest:
            raise ValueError(f"pages of {cache.config.kv_heads} heads do not hold {layers} layers")
        config = cache.config.changed(kv_heads=heads, layers=layers, max_len=max_len)
        super().__init__(cache.space, config, cache.pool, sequences)
        self.cache = cache
        self._table, self._count = np.zeros((sequences, self.tables.wide), ENTRY), np.zeros(sequences, np.int64)
        self.reserve = np.full(sequences, NONE, ENTRY)

    def pages(self, sequence: int) -> list[int]:
        """Give the pages of a sequence, in order, without its reserve."""
        self._settle()
        found: list[int] = self._table[sequence, : self._count[sequence]].tolist()
        return found

    def admit(self, sequence: int, source: int) -> None:
        """Put the rows of sequence `source` of the cache in the place of a sequence. Full pages are shared; a last
        page that is not full is copied. Refuses if there is no page for the copy."""
        pages, n = self.cache.table(source), self.cache.sequences()[source]
        self._demand_place(sequence, n)
        if n % self.pool.size and not self.pool.free:
            raise refusals_page.full("PAGE-13", n, 1, 0)
        self.pool.share(pages)
        self._hold(sequence, pages, n)

    def cut(self, sequence: int, to: int) -> None:
        """Keep the first rows of a sequence, `to` at most. Refuses as `admit` does."""
        if to < 0:
            raise refusals.rollback("BATCH-18", to)
        n = min(to, self._demand_sequence(sequence))
        kept = self.pages(sequence)[: self.pool.pages_for(n)]
        if n % self.pool.size and self.pool.shared(kept[-1]) and not self.pool.free:
            raise refusals_page.full("PAGE-13", n, 1, 0)
        self.pool.share(kept)
        self._hold(sequence, kept, n)

    def drop(self, sequence: int) -> None:
        """Drop a sequence, and give its pages back."""
        self._demand_sequence(sequence)
        self._settle()
        self.pool.give([page for page in [int(self.reserve[sequence])] if page != NONE])
        self.reserve[sequence] = NONE
        self._hold(sequence, [], NOBODY)

    def _hold(self, sequence: int, pages: list[int], n: int) -> None:
        """Replace the pages of a sequence by these, which were shared for it."""
        self.pool.give(self.pages(sequence))
        if pages and n % self.pool.size and self.pool.shared(pages[-1]):
            shared = pages.pop()
            pages += self.pool.take(1)
            self.pool.copy(shared, pages[-1], n % self.pool.size)
            self.pool.give([shared])
        self._table[sequence, : len(pages)], self._count[sequence] = pages, len(pages)
        self.pool.number(self.tables.entries, sequence * self.tables.wide, pages)
        self._set_length(sequence, n)
        self._bound()

    def _make_room(self) -> None:
        """Give every sequence a page in reserve, those that need it now first, as far as the free pages go; one
        upload. Refuse a sequence that has come to `max_len`, and fewer free pages than are needed now."""
        if self.lengths.max() == self.max_len:
            raise refusals.full("BATCH-15", int(self.lengths.argmax()), self.max_len)
        self._settle()
        self.pool.give(self.reserve[self.reserve != NONE].tolist())
        self.reserve[:] = NONE
        self._bound()
        due, free = self.lengths == self._until, len(self.pool.free)
        if due.sum() > free:
            raise refusals_page.full("PAGE-13", int(due.sum()), int(due.sum()), free)
        there = np.flatnonzero(self.lengths >= 0)
        first = there[np.argsort(~due[there], kind="stable")][:free]
        self.reserve[first] = self.pool.take(len(first))
        self.space.runtime.upload(self.reserve, self.tables.following)
        self._bound()

    def _settle(self) -> None:
        """Add each reserve that was begun to the pages of its sequence."""
        begun = np.flatnonzero((self.reserve != NONE) & (self.lengths > self._count * self.pool.size))
        self._table[begun, self._count[begun]] = self.reserve[begun]
        self._count[begun] += 1
        self.reserve[begun] = NONE

    def _bound(self) -> None:
        """Find the length up to which each sequence has pages."""
        held = self._count + (self.reserve != NONE)
        self._until = np.minimum(held * self.pool.size, self.max_len)
        self._look_ahead()

    def read(self, sequence: int) -> Pair:
        """Download the rows of a sequence, `[layers, kv_heads, n, dim]`."""
        n, pages = self._demand_sequence(sequence), np.array(self.pages(sequence), ENTRY)
        block = self.space.scratch("table", max(1, pages.nbytes))
        if n:
            self.space.runtime.upload(pages, block)
        return self._by_layers(self.pool.gathered(block, n))
