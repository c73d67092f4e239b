"""Growing caches: a list of rows, a list for each head, a chain, and versions that stay as they were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import numpy as np

from hostile.attacks.designs.rows import Row, arrays_of, check, demand, rows_of
from kvref.abilities import masks
from kvspec.contract import Lengths, Pair
from kvspec.geometry import Array, Config, fits
from kvspec.masks import Logical


class Sequenced:
    """A cache of one sequence, or of a uniform batch. `held`: the rows that queries of the last append find."""

    needed: ClassVar[tuple[str, ...]] = ()
    kind = "growing"

    def __init__(self, config: Config) -> None:
        check(config, *self.needed)
        self.config = config
        self.free()

    def free(self) -> None:
        """Forget all."""
        self.offset, self.written = 0, False
        self.queries: int | None = None
        self.clear()

    def clear(self) -> None:
        """Hold no rows."""
        raise NotImplementedError

    def add(self, rows: list[Row]) -> None:
        """Hold more rows."""
        raise NotImplementedError

    def held(self) -> list[Row]:
        """What queries of the last append find, oldest first."""
        raise NotImplementedError

    def cut(self, to: int) -> None:
        """Forget the rows from a position on."""
        raise NotImplementedError

    def append(self, keys: Array, values: Array) -> None:
        """Add rows behind the offset."""
        n = keys.shape[2]
        demand(n == 0 or fits(self.config, Pair(keys, values)), "rows of another geometry")
        if n:
            self.demand_room(n)
            self.add(rows_of(Pair(keys, values)))
            self.offset, self.written = self.offset + n, True
        self.queries = n

    def demand_room(self, n: int) -> None:
        """There is room for any number of rows."""

    def read(self, what: str) -> Pair | None:
        """Rows as arrays of the caller's."""
        if what != "history" and not self.written:
            return None
        return arrays_of(self.seen() if what == "view" else self.held(), self.config, self.config.batch)

    def seen(self) -> list[Row]:
        """What a next query sees beside itself."""
        return self.held()

    def lengths(self) -> Lengths:
        """The offset: how much is allocated is nobody's business."""
        return Lengths(self.offset)

    def can_rewind(self, to: int) -> bool:
        """Any position that was reached."""
        return 0 <= to <= self.offset

    def rewind(self, to: int) -> None:
        """Go back."""
        demand(self.can_rewind(to), "it cannot go there")
        self.cut(to)
        self.offset, self.queries = to, None

    def mask(self, logical: Logical) -> Array | None:
        """The mask over what is held."""
        demand(self.queries is not None, "no queries")
        return masks.in_position_order(logical, self.config.batch, self.queries or 0, len(self.held()))


class RowList(Sequenced):
    """A growing cache that is a Python list of rows."""

    def clear(self) -> None:
        self.rows: list[Row] = []

    def add(self, rows: list[Row]) -> None:
        self.rows += rows

    def held(self) -> list[Row]:
        return self.rows

    def cut(self, to: int) -> None:
        del self.rows[to:]


class HeadLists(RowList):
    """A growing cache that is a list for each head of each sequence: heads lie outermost."""

    def clear(self) -> None:
        self.places = [(b, h) for b in range(self.config.batch) for h in range(self.config.kv_heads)]
        self.of: dict[tuple[int, int], list[Row]] = {place: [] for place in self.places}

    def add(self, rows: list[Row]) -> None:
        for place in self.places:
            self.of[place] += [Row(*(part[place] for part in row)) for row in rows]

    def held(self) -> list[Row]:
        shape = self.config.batch, self.config.kv_heads, -1
        together = zip(*(self.of[place] for place in self.places), strict=True)
        return [Row(*(np.stack(p).reshape(shape) for p in zip(*heads, strict=True))) for heads in together]

    def cut(self, to: int) -> None:
        for place in self.places:
            del self.of[place][to:]


class Node(NamedTuple):
    """A row, and the node of the row before it."""

    row: Row
    before: Node | None


class Chain(RowList):
    """A growing cache that is an immutable chain of rows, the newest first: to go back is to follow it."""

    def clear(self) -> None:
        self.newest: Node | None = None

    def add(self, rows: list[Row]) -> None:
        for row in rows:
            self.newest = Node(row, self.newest)

    def held(self) -> list[Row]:
        return list(self._rows())[::-1]

    def _rows(self) -> Iterator[Row]:
        node = self.newest
        while node is not None:
            yield node.row
            node = node.before

    def cut(self, to: int) -> None:
        for _ in range(self.offset - to):
            assert self.newest is not None
            self.newest = self.newest.before


class SharedVersions(RowList):
    """A growing cache whose rows are a tuple that each append replaces: what was read before stays as it was."""

    def clear(self) -> None:
        self.version: tuple[Row, ...] = ()

    def add(self, rows: list[Row]) -> None:
        self.version = (*self.version, *rows)

    def held(self) -> list[Row]:
        return list(self.version)

    def cut(self, to: int) -> None:
        self.version = self.version[:to]
