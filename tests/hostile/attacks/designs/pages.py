"""A paged cache whose pages are lists of rows."""

from __future__ import annotations

from collections import Counter

from hostile.attacks.designs.rows import Row, arrays_of, check, demand, rows_of
from kvspec.contract import Pair
from kvspec.geometry import Array, Config, fits


class DictPages:
    """A paged cache whose pages are lists of rows in a dictionary; the last page freed is the next one taken."""

    kind = "page"

    def __init__(self, config: Config) -> None:
        check(config, "page_size", "pages")
        demand(config.batch == 1 and config.debug in (None, 1), "no such pool")
        self.config, self.size = config, config.page_size or 0
        self.pages: dict[int, list[Row]] = {}
        self.unused = list(range(config.pages or 0))
        self.tables: dict[int, list[int]] = {}
        self.ends: dict[int, int] = {}

    def _counts(self) -> Counter[int]:
        return Counter(page for table in self.tables.values() for page in table)

    def _end(self, sequence: int) -> int:
        demand(sequence in self.ends, "no such sequence")
        return self.ends[sequence]

    def admit(self) -> int:
        """The lowest number that is not in use."""
        number = next(n for n in range(len(self.ends) + 1) if n not in self.ends)
        self.tables[number], self.ends[number] = [], 0
        return number

    def fork(self, sequence: int, n: int) -> int:
        """The same pages in another table."""
        demand(0 <= n <= self._end(sequence), "no such prefix")
        number = self.admit()
        self.tables[number] = self.tables[sequence][: -(-n // self.size)]
        self.ends[number] = n
        return number

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        """Row by row; a shared page is copied when it is written to."""
        if keys.ndim == 4 and keys.shape[2] == 0:
            return
        end = self._end(sequence)
        demand(fits(self.config, Pair(keys, values)), "rows of another geometry")
        shared = bool(end % self.size) and self._counts()[self.tables[sequence][-1]] > 1
        more = -(-(end + keys.shape[2]) // self.size) - len(self.tables[sequence])
        demand(more + shared <= len(self.unused), "no pages")
        self._own(sequence, end, shared)
        for row in rows_of(Pair(keys[0], values[0])):
            if self.ends[sequence] % self.size == 0:
                self.tables[sequence].append(self._take([]))
            self.pages[self.tables[sequence][-1]].append(row)
            self.ends[sequence] += 1

    def _own(self, sequence: int, end: int, shared: bool) -> None:
        """Have the last page alone, and no rows in it behind the end."""
        if end % self.size:
            rows = self.pages[self.tables[sequence][-1]][: end % self.size]
            if shared:
                self.tables[sequence][-1] = self._take(rows)
            else:
                self.pages[self.tables[sequence][-1]] = rows

    def _take(self, rows: list[Row]) -> int:
        page = self.unused.pop()
        self.pages[page] = rows
        return page

    def truncate(self, sequence: int, to: int) -> None:
        """Give back the pages behind."""
        demand(0 <= to <= self._end(sequence), "no such length")
        kept = -(-to // self.size)
        gone, self.tables[sequence] = self.tables[sequence][kept:], self.tables[sequence][:kept]
        self.ends[sequence] = to
        self.unused += [page for page in gone if page not in self._counts()]

    def drop(self, sequence: int) -> None:
        """Give back all."""
        self.truncate(sequence, 0)
        del self.tables[sequence], self.ends[sequence]

    def sequences(self) -> list[int]:
        """The lengths, by number."""
        return [self.ends.get(n, -1) for n in range(max(self.ends, default=-1) + 1)]

    def read_sequence(self, sequence: int) -> Pair:
        """All rows of its pages, as far as it goes."""
        rows = [row for page in self.tables[sequence] for row in self._full(page)]
        return arrays_of(rows[: self._end(sequence)], self.config)

    def _full(self, page: int) -> list[Row]:
        """The slots of a page; behind what was written is whatever is there."""
        rows = self.pages[page]
        return rows + rows[-1:] * (self.size - len(rows))

    def free_pages(self) -> int:
        """Pages in no table."""
        return len(self.unused)
