"""Paged caches: sequences with block tables over one pool, shared prefixes, copy-on-write."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

from kvref.abilities import attention, rope
from kvref.abilities.attention import Seen
from kvref.abilities.transfers import Numbered, Transfer, Transfers
from kvref.cite import cite
from kvref.memory import forms, mem
from kvref.memory.page_pool import Pool
from kvref.memory.rows import count
from kvspec.contract import Attention, Pair
from kvspec.geometry import Array, Config, still
from kvspec.refusals import common as refusals
from kvspec.refusals import page as refusals_page


class Pages(Transfers):
    """A pool, and the sequences in use by their numbers."""

    kind = "page"

    def __init__(self, config: Config) -> None:
        valid = refusals.valid(config) and config.batch == 1 and config.debug in (None, 1)
        if not valid or config.page_size is None or config.pages is None:
            raise refusals_page.config("CACHE-3", config)
        cite("PAGE-2")
        self.config, self.pool = config, Pool(config)
        self.in_use: dict[int, Numbered] = {}
        self.in_flight: dict[int, Transfer] = {}

    def admit(self) -> int:
        """A new sequence of no rows."""
        return self.hold(Numbered())

    def hold(self, made: Numbered) -> int:
        """A new sequence: the lowest number not in use."""
        cite("PAGE-3", "PAGE-5")
        number = 0
        while number in self.in_use:
            number += 1
        self.in_use[number] = made
        return number

    def _of(self, sequence: int) -> Numbered:
        if sequence not in self.in_use:
            raise refusals_page.sequence("PAGE-4", sequence)
        return self.in_use[sequence]

    def sequences(self) -> list[int]:
        """The length of each sequence up to the highest number in use; -1 for a number that is not."""
        if not self.in_use:
            return []
        numbers = range(max(self.in_use) + 1)
        return [self.in_use[n].length if n in self.in_use else -1 for n in numbers]

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        """Append rows `[1, kv_heads, n, dim]` to a sequence."""
        new = Pair(keys, values)
        if keys.ndim == 4 and count(new) == 0:
            cite("CACHE-1")
            return
        to = self._of(sequence)
        self._appendable(new, to)
        cite("PAGE-6", "PAGE-10", "PAGE-11", "PAGE-18", "PAGE-27")
        self._make_room(to, to.length + count(new))
        kept = self.pool.kept.encoded(Pair(keys[0], values[0]))
        self.pool.write(to.table, to.length, kept)
        to.length += count(new)

    def _appendable(self, new: Pair, to: Numbered) -> None:
        """Refuse, before anything is taken, rows that do not fit or find no pages."""
        if not refusals.fits(self.config, new):
            raise refusals.rows("CACHE-2", self.config, *new)
        needed = self.pool.entries(to.length + count(new)) - len(to.table)
        if needed > self.pool.free:
            raise refusals_page.full("PAGE-13", count(new), needed, self.pool.free)
        if needed + self._shared(to) > self.pool.free:
            raise refusals_page.no_copy("PAGE-21", count(new), needed, self.pool.free)

    def _shared(self, to: Numbered) -> bool:
        """Whether the next row goes to a page that another table has as well."""
        return to.length % self.pool.size != 0 and self.pool.counts[to.table[-1]] > 1

    def _make_room(self, to: Numbered, length: int) -> None:
        """Give a sequence pages of its own for all positions that will be written."""
        if to.table:
            cite("PAGE-19")
        if self._shared(to):
            to.table[-1] = self.pool.copied(to.table[-1], to.length % self.pool.size)
        while len(to.table) < self.pool.entries(length):
            to.table.append(self.pool.take())

    def fork(self, sequence: int, n: int) -> int:
        """A new sequence that shares the first n rows of another."""
        parent = self._of(sequence)
        if not 0 <= n <= parent.length:
            raise refusals_page.fork("PAGE-16", n, sequence, parent.length)
        cite("PAGE-14", "PAGE-15", "PAGE-18")
        made = Numbered(parent.table[: self.pool.entries(n)], n)
        self.pool.share(made.table)
        return self.hold(made)

    def truncate(self, sequence: int, to: int) -> None:
        """Drop the rows of a sequence from `to` on."""
        cut = self._of(sequence)
        if not 0 <= to <= cut.length:
            raise refusals_page.truncate("CACHE-7", to, sequence, cut.length)
        cite(
            "PAGE-22",
            "PAGE-18",
            "PAGE-27",
            *(["PAGE-25"] if not to else ["PAGE-23"] if to % self.pool.size else []),
        )
        self._cut(cut, to)

    def _cut(self, cut: Numbered, to: int) -> None:
        kept = self.pool.entries(to)
        self.pool.give(cut.table[kept:])
        cut.table, cut.length = cut.table[:kept], to

    def drop(self, sequence: int) -> None:
        """Give a sequence up."""
        self._cut(self._of(sequence), 0)
        cite("PAGE-26", "PAGE-5", "PAGE-18", "PAGE-27")
        del self.in_use[sequence]

    def read_sequence(self, sequence: int) -> Pair:
        """Copies of the rows of a sequence, `[kv_heads, n, dim]`."""
        found = self._of(sequence)
        return self.pool.through(found.table, found.length)

    def table(self, sequence: int) -> list[int]:
        """The pages of a sequence, in order."""
        return list(self._of(sequence).table)

    def references(self) -> list[int]:
        """The number of tables that have each page of the pool."""
        return list(self.pool.counts)

    def free_pages(self) -> int:
        """How many pages no table has."""
        return self.pool.free

    def gather(self, table: Sequence[int], n: int) -> Pair:
        """The first n rows, `[kv_heads, n, dim]`, through a block table that is handed in. Raises TypeError where
        an entry or n is no whole number."""
        table, n = [index(page) for page in table], index(n)
        needed = self.pool.entries(n)
        self._gatherable(table, needed, n)
        cite("PAGE-28" if n else "PAGE-29", *(["PAGE-33"] if needed < len(table) else []))
        return self.pool.through(table, n)

    def _gatherable(self, table: Sequence[int], needed: int, n: int) -> None:
        """Refuse a negative number of rows and a table that ends too early. Then refuse a table that names no page
        or leads to rows that no sequence has."""
        if n < 0 or needed > len(table):
            raise refusals_page.short("PAGE-30", n, len(table), self.pool.size)
        for i, page in enumerate(table[:needed]):
            if not 0 <= page < len(self.pool.counts):
                raise refusals_page.entry("PAGE-31", i, page, len(self.pool.counts))
        for page, slots, _ in self.pool.runs(table, 0, n):
            live = max((self._rows_in(page, s) for s in self.in_use.values()), default=0)
            if slots.stop > live:
                raise refusals_page.dead("PAGE-32", page, slots.stop, live)

    def _rows_in(self, page: int, of: Numbered) -> int:
        """How many rows a sequence has from the first slot of a page on; may be more than the page holds."""
        return of.length - of.table.index(page) * self.pool.size if page in of.table else 0

    def peek(self, page: int) -> Pair:
        """All slots of a page, `[kv_heads, page_size, dim]`."""
        if not 0 <= page < len(self.pool.counts):
            raise refusals_page.peek("PAGE-35", page, len(self.pool.counts))
        if not self.config.debug:
            raise refusals_page.no_debug("PAGE-36")
        cite("PAGE-34")
        return self.pool.page(page)

    def plan(self, n: int) -> mem.Plan:
        """What is held, whatever is appended."""
        return self.held(), self.held()

    def held(self) -> int:
        """Bytes of all pages."""
        cite("PAGE-39")
        return self.pool.nbytes

    def attend(
        self,
        queries: Array,
        keys: Array,
        values: Array,
        how: Attention,
        out: Array | None = None,
        of: int | None = None,
    ) -> Array:
        """Append n rows to a sequence, and have n queries `[1, heads, n, k_dim]` attend to all its rows: the output
        `[1, heads, n, v_dim]`."""
        if attention.nothing(queries, keys):
            cite("CACHE-1")
            return attention.empty(self.config, queries, out)
        to, n = self._of(of or 0), keys.shape[2]
        self._appendable(Pair(keys, values), to)
        begin, end = to.length, to.length + n
        attention.demand(self.config, queries, (1, None, n), how, end, out)
        queries, keys = rope.at_positions(how.rope, begin, queries, keys, still(self.config))
        self.append(keys, values, of or 0)
        cite("PAGE-37", "ATTN-1", "ATTN-13" if out is None else "ATTN-14")
        forms.cite_attended(self.config)
        held = Pair(*(a[None] for a in self.pool.seen(to.table, end)))
        seen = Seen(how.through, end, end)
        if attention.plain(how):
            return attention.given(out, attention.attended(queries, held, seen, how.splits), queries)
        return attention.given(out, attention.scored(queries, held, seen, how), queries)
