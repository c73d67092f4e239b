"""Pools on a device that find rows again. The host knows what lies in each page; the device is only told where to
copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvgpu.caches.transfers import Table
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.cache_rows import acceptable, fitting, rows_in
from kvgpu.memory.device_arrays import source
from kvgpu.memory.keyed_pool import KeyedPool
from kvgpu.memory.layout import Place, move
from kvspec.contract import Pair, Request
from kvspec.geometry import Config
from kvspec.refusals import common as refusals
from kvspec.refusals import keyed as refusals_keyed


@dataclass
class Running:
    """One sequence: its request, its block table, and the tokens proposed behind its own."""

    request: Request
    table: Table
    proposed: tuple[int, ...] = ()

    @property
    def left(self) -> int:
        """Count the tokens that are not computed."""
        return len(self.request.tokens) + len(self.proposed) - self.table.length


class Keyed:
    """A pool, and the sequences in use by their numbers."""

    kind = "keyed"

    def __init__(self, config: Config, space: Workspace) -> None:
        wrong = config.page_size is None or config.pages is None or config.batch != 1
        if wrong or not acceptable(config) or config.granule not in (None, "page", "row"):
            raise refusals_keyed.config("CACHE-3", config)
        self.config, self.space, self.pool = config, space, KeyedPool(space, config)
        self.in_use: dict[int, Running] = {}

    def match(self, request: Request) -> int:
        """Count the tokens whose rows are found; nothing is launched."""
        return self._found(request)[0]

    def _found(self, request: Request) -> tuple[int, list[int]]:
        """Give how many rows are found, and where. Refuses a request without tokens, or with items behind them."""
        if not request.tokens or any(at >= len(request.tokens) for _, at in request.media):
            raise refusals_keyed.request("KEY-11", len(request.tokens), [at for _, at in request.media])
        return self.pool.found(request)

    def request(self, request: Request, chunk: int | None, keys: Any, values: Any) -> tuple[int, int]:
        """Begin a sequence with the rows that are found; write the others, or a chunk of them. The page in which
        a hit ends is copied first if another table has it. Give the sequence's number, and how many were found."""
        hit, pages = self._found(request)
        tokens = len(request.tokens)
        end = tokens if chunk is None else min(tokens, hit + chunk)
        copied = hit % self.pool.size > 0 and bool(self.pool.tables[pages[-1]])
        new = self._demand_room(pages, end, copied)
        rows = self._staged(keys, values, hit, end)
        one = Running(request, Table(self.pool, pages, hit))
        self.pool.share(pages)
        one.table.extend(self.pool, new, copied)
        self._write(one, end, rows)
        number = next(n for n in range(len(self.in_use) + 1) if n not in self.in_use)
        self.in_use[number] = one
        return number, hit

    def compute(self, sequence: int, n: int, keys: Any, values: Any) -> None:
        """Write the rows of the next n tokens of a request, or of all that are left."""
        one = self._decided(sequence)
        self._compute(one, one.request, min(len(one.request.tokens), one.table.length + n), keys, values)

    def answer(self, sequence: int, tokens: Sequence[int], keys: Any, values: Any) -> None:
        """Add tokens to a request, and write the rows of all that are left."""
        one = self._decided(sequence)
        request = one.request.longer(tokens)
        self._compute(one, request, len(request.tokens), keys, values)

    def propose(self, sequence: int, tokens: Sequence[int], keys: Any, values: Any) -> None:
        """Write the rows of tokens that nobody has chosen yet."""
        one = self._decided(sequence, whole=True)
        self._compute(one, one.request, one.table.length + len(tokens), keys, values)
        one.proposed = tuple(tokens)

    def accept(self, sequence: int, n: int) -> None:
        """Have the rows of the first n proposed tokens found, and drop the others; nothing is launched."""
        one = self._of(sequence)
        if n < 0 or n > len(one.proposed):
            raise refusals_keyed.accept("KEY-23", n, len(one.proposed))
        begin, table = len(one.request.tokens), one.table
        table.length -= len(one.proposed) - n
        one.request, one.proposed = one.request.longer(one.proposed[:n]), ()
        self.pool.learn(one.request, table.pages, begin, begin + n)
        kept = self.pool.pages_for(table.length)
        gone = table.pages[kept:]
        del table.pages[kept:]
        self.pool.give(gone)

    def finish(self, sequence: int) -> None:
        """End a sequence; another one gets the memory of its table."""
        table = self._of(sequence).table
        self.pool.give(table.pages)
        self.pool.spare.append(table.there)
        del self.in_use[sequence]

    def abort(self, sequence: int) -> None:
        """End a sequence, and have nothing found in the pages that it alone has."""
        for page in self._of(sequence).table.pages:
            if not self.pool.shared(page):
                self.pool.known.cut(page, 0)
        self.finish(sequence)

    def evict(self, n: int) -> None:
        """Have n pages forget what is found in them."""
        self.pool.forget(n)

    def clear(self) -> None:
        """Have all pages forget."""
        if self.in_use:
            raise refusals_keyed.busy("KEY-34", len(self.in_use))
        self.pool.forget(self.pool.total)

    def _of(self, sequence: int) -> Running:
        if sequence not in self.in_use:
            raise refusals_keyed.sequence("KEY-16", sequence)
        return self.in_use[sequence]

    def _decided(self, sequence: int, whole: bool = False) -> Running:
        """Give a sequence without proposed tokens; with `whole` also without tokens that are left to compute."""
        one = self._of(sequence)
        if one.proposed or (whole and one.left):
            raise refusals_keyed.undecided("KEY-21", sequence, one.left, len(one.proposed))
        return one

    def _demand_room(self, pages: Sequence[int], end: int, copied: bool = False) -> int:
        """Count the pages that rows up to `end` need beside these, none of which is free for them."""
        new = self.pool.pages_for(end) - len(pages)
        free = self.pool.unused() - sum(not self.pool.tables[page] for page in pages)
        if new + copied > free:
            raise refusals_keyed.full("KEY-15", new + copied, free)
        return new

    def _compute(self, one: Running, request: Request, end: int, keys: Any, values: Any) -> None:
        """Write the rows of a sequence up to `end`, which is of this request then."""
        new, begin = self._demand_room(one.table.pages, end), one.table.length
        rows = self._staged(keys, values, begin, end) if end > begin else None
        one.request = request
        if rows is not None:
            one.table.extend(self.pool, new, copied=False)
            self._write(one, end, rows)

    def _staged(self, keys: Any, values: Any, begin: int, end: int) -> Place:
        """Bring the rows of these positions to the device, packed."""
        if not fitting(self.config, keys, values):
            raise refusals.rows("CACHE-2", self.config, keys, values)
        if rows_in(keys) < end:
            raise ValueError(f"rows of {rows_in(keys)} tokens, and {end} are to have some")
        geometry, runtime = self.pool.geometry, self.space.runtime
        there = source(runtime, rows_in(keys), keys, values)
        if there is None:
            return self.space.staged(geometry, keys[:, :, begin:end], values[:, :, begin:end])
        packed = self.space.other(geometry, end - begin)
        move(runtime, geometry, end - begin, there.span(begin), packed.span())
        return packed

    def _write(self, one: Running, end: int, rows: Place) -> None:
        """Write packed rows up to `end`, to pages that the sequence has alone. Those of chosen tokens are found."""
        begin, table = one.table.length, one.table
        self.pool.scatter(rows, table.there, begin)
        self.pool.known.cut(table.pages[begin // self.pool.size], begin % self.pool.size)
        self.pool.learn(one.request, table.pages, begin, min(end, len(one.request.tokens)))
        table.length = end

    def sequences(self) -> list[int]:
        """Count the rows of each sequence up to the highest number in use; -1 for a number that is not."""
        numbers = range(max(self.in_use, default=-1) + 1)
        return [self.in_use[n].table.length if n in self.in_use else -1 for n in numbers]

    def read_sequence(self, sequence: int) -> Pair:
        """Download the rows of a sequence, `[kv_heads, n, dim]`."""
        table = self._of(sequence).table
        return self.pool.gathered(table.there, table.length)

    def table(self, sequence: int) -> list[int]:
        """Give the pages of a sequence, in order."""
        return self._of(sequence).table.pages.tolist()

    def references(self) -> list[int]:
        """Count the tables that have each page of the pool."""
        return self.pool.tables.tolist()  # type: ignore[no-any-return]

    def free_pages(self) -> int:
        """Count the pages that no table has."""
        return self.pool.unused()
