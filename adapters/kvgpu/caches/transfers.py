"""Transfers of a pool on a device: the host knows which pages are read or written by others, and until when."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from kvgpu.caches import parcels
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.page_pool import PAGE, Pool
from kvgpu.runtime import Block
from kvspec.contract import Pair
from kvspec.geometry import Config
from kvspec.parcels import Parcel
from kvspec.refusals import parcels as refusals


class Table:
    """The block table of a sequence, and its length: of these pages, or of the first ones of another table. `there`
    is the table on the device, with room for every page of the pool; only the entries of `pages` are read."""

    there: Block
    __slots__ = ("length", "pages", "there")

    def __init__(self, pool: Pool, pages: Sequence[int], length: int, of: Table | None = None) -> None:
        self.pages = pages if isinstance(pages, array) else array(PAGE, pages)
        self.length, self.there = length, pool.table(self.pages, None if of is None else of.there)

    def extend(self, pool: Pool, new: int, copied: bool) -> None:
        """Take more pages; a shared last page is copied first."""
        first = len(self.pages) - copied
        taken = [pool.parted(self.pages[first], self.length - first * pool.size)] if copied else []
        if new:
            taken += pool.take(new)
        pool.number(self.there, first, taken)
        self.pages[first:] = array(PAGE, taken)


@dataclass(frozen=True)
class Transfer:
    """Rows in flight, and the pages that they lie in, or are to lie in."""

    pages: Sequence[int]
    length: int
    expected: bool


class Transfers(ABC):
    """A pool whose rows leave in parcels and come in them, at once or while it goes on."""

    config: Config
    space: Workspace
    pool: Pool

    def __init__(self) -> None:
        self.in_flight: dict[int, Transfer] = {}

    @abstractmethod
    def _demand(self, sequence: int) -> Table:
        """The table of a sequence. Refuses one that is not in use."""

    @abstractmethod
    def _open(self, table: Table) -> int:
        """A new sequence with this table: its number."""

    def pack(self, sequence: int = 0) -> Parcel:
        """Download the rows of a sequence as they are kept: one launch."""
        return self._read(self._demand(sequence))

    def _read(self, table: Table) -> Parcel:
        place = self.pool.kept(table.there, table.length)
        return parcels.sent(self.space, self.config, table.length, range(table.length), place)

    def unpack(self, *parts: Parcel) -> int:
        """Upload the rows of a parcel to a new sequence, in pages of its own."""
        offset = parts[0].offset
        rows = parcels.demand(parts, self.config, range(offset))
        self._demand_pages(offset)
        return self._written(rows, self.pool.take(self.pool.pages_for(offset)), offset)

    def _demand_pages(self, n: int) -> None:
        if self.pool.pages_for(n) > len(self.pool.free):
            raise refusals.no_room("MOVE-10", n, len(self.pool.free) * self.pool.size)

    def _written(self, rows: Pair, pages: Sequence[int], n: int) -> int:
        """A new sequence of these pages, with these rows."""
        place = parcels.received(self.space, self.config, rows)
        table = Table(self.pool, pages, n)
        if place is not None:
            self.pool.scatter(place, table.there, 0)
        return self._open(table)

    def send(self, sequence: int) -> int:
        """Begin to send the rows of a sequence; nothing is launched."""
        table = self._demand(sequence)
        self.pool.share(table.pages)
        return self._begin(Transfer(table.pages[:], table.length, expected=False))

    def sent(self, transfer: int) -> Parcel:
        """Download the rows of a transfer by its own table, and give its pages back."""
        flying = self._demand_flying(transfer, expected=False)
        table = Table(self.pool, flying.pages, flying.length)
        made = self._read(table)
        self.pool.spare.append(table.there)
        self._end(transfer)
        return made

    def transfers(self) -> list[int]:
        """The rows of each transfer in flight, -1 at numbers that are not."""
        numbers = range(max(self.in_flight, default=-1) + 1)
        return [self.in_flight[n].length if n in self.in_flight else -1 for n in numbers]

    def expect(self, n: int) -> int:
        """Take pages for n rows; nothing is launched."""
        self._demand_pages(n)
        return self._begin(Transfer(self.pool.take(self.pool.pages_for(n)), n, expected=True))

    def arrive(self, transfer: int, *parts: Parcel) -> int:
        """Upload the rows of a parcel to a new sequence, in the pages that were taken for them."""
        flying, n = self._demand_flying(transfer, expected=True), parts[0].offset
        rows = parcels.demand(parts, self.config, range(n))
        if n != flying.length:
            raise refusals.unexpected("MOVE-22", n, flying.length)
        del self.in_flight[transfer]
        return self._written(rows, flying.pages, n)

    def lose(self, transfer: int) -> None:
        """Give the pages of a transfer back; nothing is launched, unless pages are poisoned."""
        self._demand_flying(transfer)
        self._end(transfer)

    def _begin(self, flying: Transfer) -> int:
        number = next(n for n in range(len(self.in_flight) + 1) if n not in self.in_flight)
        self.in_flight[number] = flying
        return number

    def _demand_flying(self, transfer: int, expected: bool | None = None) -> Transfer:
        flying = self.in_flight.get(transfer)
        if flying is None or expected not in (None, flying.expected):
            raise refusals.over("MOVE-24", transfer)
        return flying

    def _end(self, transfer: int) -> None:
        self.pool.give(self.in_flight.pop(transfer).pages)
