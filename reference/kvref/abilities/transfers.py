"""Transfers: pages of a pool that others read or write while it goes on, and who has them until that is done."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from kvref.abilities.parcels import Packing
from kvref.cite import cite
from kvref.memory.page_pool import Pool
from kvspec.contract import Pair
from kvspec.parcels import Parcel
from kvspec.refusals import parcels as refusals


class Numbered:
    """One sequence: position p lies in slot p mod page_size of the page that entry p div page_size names."""

    def __init__(self, table: Sequence[int] = (), length: int = 0) -> None:
        self.table, self.length = list(table), length


class Transfer(Numbered):
    """Rows in flight: those that are read from its pages, or are expected in them."""

    def __init__(self, table: Sequence[int], length: int, expected: bool) -> None:
        super().__init__(table, length)
        self.expected = expected


class Transfers(Packing):
    """A pool with transfers by their numbers. A transfer has its pages as a sequence has its own."""

    pool: Pool
    in_flight: dict[int, Transfer]

    @abstractmethod
    def _of(self, sequence: int) -> Numbered:
        """The sequence of this number. Refuses one that is not in use."""

    @abstractmethod
    def hold(self, made: Numbered) -> int:
        """Give a new sequence the lowest number that is not in use."""

    def pack(self, sequence: int = 0) -> Parcel:
        """All rows of a sequence, whatever pages they lie in."""
        return self._read(self._of(sequence))

    def _read(self, of: Numbered) -> Parcel:
        kept = self.pool.kept_rows(of.table, of.length)
        return self.parcel(range(of.length), of.length, Pair(*(a[None] for a in kept)))

    def unpack(self, *parts: Parcel) -> int:
        """A new sequence with the rows of a parcel, in pages of its own."""
        rows = self.found(parts, range(parts[0].offset))
        return self._held(self._taken(parts[0].offset), rows)

    def _taken(self, n: int) -> Numbered:
        """Pages for n rows that nobody has."""
        if self.pool.entries(n) > self.pool.free:
            raise refusals.no_room("MOVE-10", n, self.pool.free * self.pool.size)
        return Numbered([self.pool.take() for _ in range(self.pool.entries(n))], n)

    def _held(self, made: Numbered, rows: Pair) -> int:
        """A new sequence of these pages, with rows `[1, kv_heads, n, dim]` as they are kept."""
        cite("MOVE-4", "MOVE-5", "MOVE-6", "MOVE-13")
        self.pool.write(made.table, 0, Pair(rows.keys[0], rows.values[0]))
        return self.hold(made)

    def send(self, sequence: int) -> int:
        """Begin to send the rows of a sequence."""
        of = self._of(sequence)
        cite("MOVE-19", "MOVE-20")
        self.pool.share(of.table)
        return self._begun(Transfer(of.table, of.length, expected=False))

    def sent(self, transfer: int) -> Parcel:
        """The rows that were read; its pages go back."""
        made = self._read(self._flying(transfer, expected=False))
        cite("MOVE-19", "MOVE-20")
        self._ended(transfer)
        return made

    def transfers(self) -> list[int]:
        """The rows of each transfer in flight, -1 at numbers that are not."""
        numbers = range(max(self.in_flight, default=-1) + 1)
        return [self.in_flight[n].length if n in self.in_flight else -1 for n in numbers]

    def expect(self, n: int) -> int:
        """Take pages for rows that are to come."""
        cite("MOVE-21")
        return self._begun(Transfer(self._taken(n).table, n, expected=True))

    def arrive(self, transfer: int, *parts: Parcel) -> int:
        """A new sequence with the rows of a parcel, in the pages that were taken for them."""
        of = self._flying(transfer, expected=True)
        rows = self.found(parts, range(parts[0].offset))
        if parts[0].offset != of.length:
            raise refusals.unexpected("MOVE-22", parts[0].offset, of.length)
        cite("MOVE-22")
        del self.in_flight[transfer]
        return self._held(Numbered(of.table, of.length), rows)

    def lose(self, transfer: int) -> None:
        """End a transfer without its rows."""
        self._flying(transfer)
        cite("MOVE-23")
        self._ended(transfer)

    def _begun(self, made: Transfer) -> int:
        """The lowest number that is not in flight."""
        number = 0
        while number in self.in_flight:
            number += 1
        self.in_flight[number] = made
        return number

    def _flying(self, transfer: int, expected: bool | None = None) -> Transfer:
        """A transfer that goes this way. Refuses one that has ended."""
        found = self.in_flight.get(transfer)
        if found is None or expected not in (None, found.expected):
            raise refusals.over("MOVE-24", transfer)
        return found

    def _ended(self, transfer: int) -> None:
        self.pool.give(self.in_flight.pop(transfer).table)
