"""Pools that find rows again by what was computed before them: requests share pages, which outlive sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kvref.cite import cite
from kvref.memory import meter
from kvspec.contract import Pair, Request
from kvspec.geometry import DTYPES, Array, Config
from kvspec.refusals import common as refusals
from kvspec.refusals import keyed as refusals_keyed

History = tuple[Any, ...]
"""All that a row depends on, and the salt. Rows are found by it as it is: there is no hash that could collide."""


@dataclass
class Running:
    """One sequence: its request, its block table, how many rows it has, and the tokens proposed behind them."""

    request: Request
    table: list[int] = field(default_factory=list)
    length: int = 0
    proposed: tuple[int, ...] = ()


class Keyed:
    """`known[page]` are the histories of the rows of a page that can be found, from its first slot on.
    `counts[page]` tables have the page, and `begun[page]` says when it was taken. `freed` are the pages with such
    rows that no table has; the page that was given up first comes first."""

    kind = "keyed"

    def __init__(self, config: Config) -> None:
        valid = refusals.valid(config) and config.batch == 1 and config.granule in (None, "page", "row")
        if not valid or config.page_size is None or config.pages is None:
            raise refusals_keyed.config("CACHE-3", config)
        cite("KEY-2")
        self.config, self.size, self.rows = config, int(config.page_size), config.granule == "row"
        self.keys, self.values = (
            meter.allocated((config.pages, *config.shape(kind, self.size)[1:]), DTYPES[config.dtype])
            for kind in "kv"
        )
        self.known: list[list[History]] = [[] for _ in range(config.pages)]
        self.counts, self.begun = [0] * config.pages, [0] * config.pages
        self.freed: list[int] = []
        self.taken = 0
        self.in_use: dict[int, Running] = {}

    # What is found

    def match(self, request: Request) -> int:
        """How many rows are found."""
        self._demand_whole(request)
        cite("KEY-3")
        return self._found(request)[0]

    def _demand_whole(self, request: Request) -> None:
        if not request.tokens or any(at >= len(request.tokens) for _, at in request.media):
            raise refusals_keyed.request("KEY-11", len(request.tokens), [at for _, at in request.media])

    def _found(self, request: Request) -> tuple[int, list[int]]:
        """How many rows are found, and the pages that they lie in."""
        n, pages = 0, list[int]()
        while page_run := self._best(request, n):
            pages.append(page_run[0])
            n += page_run[1]
            if page_run[1] < self.size:
                break
        n = self._allowed(n, request)
        self._cite_found(request, n)
        return n, pages[: self._entries(n)]

    def _allowed(self, n: int, request: Request) -> int:
        """At most this many rows: one token is computed in any case, and a hit ends where it may."""
        n = min(n, len(request.tokens) - 1)
        return n if self.rows else n - n % self.size

    def _best(self, request: Request, n: int) -> tuple[int, int] | None:
        """Give the page with most of the rows from position n on, and how many it has. Among equals take a page
        that a sequence has, then the one that was taken first. None if there is no such row."""
        wanted = [self._history(request, p) for p in range(n, min(n + self.size, len(request.tokens)))]
        runs = [_run(known, wanted) for known in self.known]
        page = min(range(len(runs)), key=lambda p: (-runs[p], self.counts[p] == 0, self.begun[p]))
        return (page, runs[page]) if runs[page] else None

    def _history(self, request: Request, p: int) -> History:
        return request.salt, *request.depends(p)

    def _cite_found(self, request: Request, n: int) -> None:
        """Cite what a question about rows exercises."""
        named = [("KEY-5", request.adapter), ("KEY-6", request.salt), ("KEY-8", request.media)]
        apart = ["KEY-7"] if request.adapter or request.salt else []
        cite("KEY-4", "KEY-9", "KEY-10", "KEY-19", "KEY-30", *(c for c, said in named if said), *apart)

    # Sequences

    def request(self, request: Request, chunk: int | None, keys: Array, values: Array) -> tuple[int, int]:
        """Begin a sequence: its number, and how many rows were found."""
        self._demand_whole(request)
        n, pages = self._found(request)
        end = len(request.tokens) if chunk is None else min(len(request.tokens), n + chunk)
        self._demand_room(pages, n, end, pages)
        cite("KEY-12", *(["KEY-13", "KEY-14"] if n else []), "KEY-24", "KEY-25", "KEY-26", "KEY-31")
        number = next(i for i in range(len(self.in_use) + 1) if i not in self.in_use)
        self.in_use[number] = Running(request, pages, n)
        self._share(pages)
        self._write(self.in_use[number], end, keys, values)
        return number, n

    def compute(self, sequence: int, n: int, keys: Array, values: Array) -> None:
        """Compute the next n tokens, or as many as are left."""
        one = self._of(sequence)
        self._demand_decided(sequence, one)
        end = min(len(one.request.tokens), one.length + n)
        self._demand_room(one.table, one.length, end)
        cite("KEY-17", "KEY-24", "KEY-26", "KEY-31")
        self._write(one, end, keys, values)

    def answer(self, sequence: int, tokens: Sequence[int], keys: Array, values: Array) -> None:
        """Add tokens, and compute all that are left."""
        one = self._of(sequence)
        self._demand_decided(sequence, one)
        longer = one.request.longer(tokens)
        self._demand_room(one.table, one.length, len(longer.tokens))
        cite("KEY-18", "KEY-24", "KEY-26", "KEY-31")
        one.request = longer
        self._write(one, len(longer.tokens), keys, values)

    def propose(self, sequence: int, tokens: Sequence[int], keys: Array, values: Array) -> None:
        """Compute tokens that nobody has chosen yet."""
        one = self._of(sequence)
        self._demand_decided(sequence, one, whole=True)
        end = one.length + len(tokens)
        self._demand_room(one.table, one.length, end)
        cite("KEY-20", "KEY-24", "KEY-26", "KEY-31")
        one.proposed = tuple(tokens)
        self._write(one, end, keys, values)

    def accept(self, sequence: int, n: int) -> None:
        """Keep the first n proposed tokens."""
        one = self._of(sequence)
        if not 0 <= n <= len(one.proposed):
            raise refusals_keyed.accept("KEY-23", n, len(one.proposed))
        cite("KEY-22", "KEY-26")
        begin = len(one.request.tokens)
        one.request, dropped = one.request.longer(one.proposed[:n]), one.proposed[n:]
        one.proposed = ()
        if dropped:
            one.length = begin + n
        for p in range(begin, one.length):
            self.known[one.table[p // self.size]].append(self._history(one.request, p))
        self._give(one.table[self._entries(one.length) :])
        del one.table[self._entries(one.length) :]

    def finish(self, sequence: int) -> None:
        """End a sequence; what it has can be found."""
        one = self._of(sequence)
        cite("KEY-27", "KEY-26", "KEY-35")
        self._give(one.table)
        del self.in_use[sequence]

    def abort(self, sequence: int) -> None:
        """End a sequence; what it alone has is found by nobody."""
        one = self._of(sequence)
        cite("KEY-28", "KEY-26", "KEY-35")
        for page in one.table:
            if self.counts[page] == 1:
                self.known[page] = []
        self._give(one.table)
        del self.in_use[sequence]

    def _of(self, sequence: int) -> Running:
        if sequence not in self.in_use:
            raise refusals_keyed.sequence("KEY-16", sequence)
        return self.in_use[sequence]

    def _demand_decided(self, sequence: int, one: Running, whole: bool = False) -> None:
        """Refuse where tokens are proposed; with `whole` also where tokens are left."""
        left = len(one.request.tokens) + len(one.proposed) - one.length
        if one.proposed or (whole and left):
            raise refusals_keyed.undecided("KEY-21", sequence, left, len(one.proposed))

    # Pages

    def _entries(self, rows: int) -> int:
        return -(-rows // self.size)

    def _demand_room(self, table: list[int], length: int, end: int, found: Sequence[int] = ()) -> None:
        """Refuse, before anything is taken, rows that find no pages. Pages that were `found` are shared first."""
        needed = self._entries(end) - len(table) + self._shared(table, length, end, 1 if found else 0)
        free = self.free_pages() - sum(self.counts[page] == 0 for page in found)
        if needed > free:
            raise refusals_keyed.full("KEY-15", needed, free)

    def _shared(self, table: list[int], length: int, end: int, more: int = 0) -> bool:
        """Whether a row is written to a page that another table has as well."""
        return end > length and length % self.size != 0 and self.counts[table[-1]] + more > 1

    def _write(self, one: Running, end: int, keys: Array, values: Array) -> None:
        """Store the rows up to `end`, in pages that no other sequence has."""
        if self._shared(one.table, one.length, end):
            one.table[-1] = self._copied(one.table[-1], one.length % self.size)
        while len(one.table) < self._entries(end):
            one.table.append(self._take())
        for p in range(one.length, end):
            page, slot = one.table[p // self.size], p % self.size
            meter.write(self.keys[page][:, slot], keys[0, :, p])
            meter.write(self.values[page][:, slot], values[0, :, p])
            chosen = p < len(one.request.tokens)
            self.known[page][slot:] = [self._history(one.request, p)] if chosen else []
        one.length = end

    def _take(self) -> int:
        """Take the lowest page in which nothing is found; else the one that has been free for longest."""
        cite("KEY-29")
        empty = (p for p, n in enumerate(self.counts) if n == 0 and p not in self.freed)
        page = next(empty, None)
        if page is None:
            page = self.freed.pop(0)
        self.known[page], self.counts[page] = [], 1
        self.taken += 1
        self.begun[page] = self.taken
        return page

    def _copied(self, page: int, rows: int) -> int:
        """A copy of the first rows of a page, in its place."""
        new = self._take()
        for array in (self.keys, self.values):
            meter.write(array[new][:, :rows], meter.resident(array[page][:, :rows]))
        self.known[new] = self.known[page][:rows]
        self._give([page])
        return new

    def _share(self, pages: Sequence[int]) -> None:
        for page in pages:
            self.counts[page] += 1
            if page in self.freed:
                self.freed.remove(page)

    def _give(self, table: Sequence[int]) -> None:
        """One table fewer has these pages, the last one first."""
        for page in reversed(table):
            self.counts[page] -= 1
            if self.counts[page] == 0:
                self._let_go(page)

    def _let_go(self, page: int) -> None:
        if len(self.known[page]) == self.size or (self.rows and self.known[page]):
            self.freed.append(page)
        else:
            self.known[page] = []

    def evict(self, n: int) -> None:
        """Have n pages forget what can be found in them."""
        cite("KEY-32", "KEY-31")
        for page in self.freed[:n]:
            self.known[page] = []
        del self.freed[:n]

    def clear(self) -> None:
        """Have all pages forget."""
        if self.in_use:
            raise refusals_keyed.busy("KEY-34", len(self.in_use))
        cite("KEY-33")
        self.evict(len(self.freed))

    # What is observed

    def sequences(self) -> list[int]:
        """The number of rows of each sequence up to the highest number in use; -1 for a number that is not."""
        numbers = range(max(self.in_use, default=-1) + 1)
        return [self.in_use[n].length if n in self.in_use else -1 for n in numbers]

    def read_sequence(self, sequence: int) -> Pair:
        """Copies of the rows of a sequence, `[kv_heads, n, dim]`."""
        one = self._of(sequence)
        return Pair(*(meter.fetched(self._through(a, one)) for a in (self.keys, self.values)))

    def _through(self, pages: Array, one: Running) -> Array:
        """The rows of a sequence, out of `[pages, kv_heads, page_size, dim]`."""
        whole = [np.empty((pages.shape[1], 0, pages.shape[3]), pages.dtype), *(pages[p] for p in one.table)]
        joined: Array = np.concatenate(whole, axis=1)[:, : one.length]
        return joined

    def table(self, sequence: int) -> list[int]:
        """The pages of a sequence, in order."""
        return list(self._of(sequence).table)

    def references(self) -> list[int]:
        """The number of tables that have each page of the pool."""
        return list(self.counts)

    def free_pages(self) -> int:
        """How many pages no table has."""
        return self.counts.count(0)

    def key(self) -> tuple[object, ...]:
        """The state: what follows is the same after two histories with equal keys."""
        order = sorted(range(len(self.begun)), key=self.begun.__getitem__)
        begun = tuple(p for p in order if self.known[p])
        sequences = ((n, s.request, s.length, s.proposed, tuple(s.table)) for n, s in sorted(self.in_use.items()))
        return *sequences, tuple(map(tuple, self.known)), tuple(self.freed), begun


def _run(known: Sequence[History], wanted: Sequence[History]) -> int:
    """How many of the first rows of a page are those that are wanted."""
    equal: Iterator[bool] = (a == b for a, b in zip(known, wanted, strict=False))
    return next((i for i, same in enumerate(equal) if not same), min(len(known), len(wanted)))
