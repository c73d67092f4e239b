"""Sequences of an engine's memory as a pool of the contract, which forks them.

What a sequence has is what a further token sees: a copy of it is asked. An engine's memory has no pages, or does
not tell them. So the pages that the sequences would need are counted here, and what has no place is refused here.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from kvadapters.pools import Pool
from kvadapters.probe.sessions.seen import Session
from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import Array, Config


class Sequences(Pool):
    """The pool. `root` is a sequence that stays empty: others are made beside it. `most` rows are taken in all."""

    def __init__(self, config: Config, root: Session, most: int) -> None:
        super().__init__(config)
        self.given, self.most = 0, most
        self.root, self.tables, self.users = root, dict[int, list[int]](), Counter[int]()

    def length(self, of: Session) -> int:
        """Count the tokens of a sequence."""
        return len(of.text)

    def admit(self) -> int:
        """Make a sequence."""
        number = self.added(self.root.beside())
        self.tables[number] = []
        return number

    def fork(self, sequence: int, n: int) -> int:
        """Copy a sequence, and cut the copy."""
        source = self.all[sequence]
        if not 0 <= n <= len(source.text):
            raise ValueError(f"a fork of {n} rows of {len(source.text)}")
        other = source.forked()
        other.rewind(len(other.text) - n)
        number = self.added(other)
        self.tables[number] = self.tables[sequence][: self.needs(0, n)]
        self.users.update(self.tables[number])
        return number

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        """Append rows as tokens. Raises ValueError where there are no pages for them."""
        n = keys.shape[2]
        if not n:
            return
        self.given += n
        if self.given > self.most:
            raise Unsupported("more rows than the adapter declares that a cache is given")
        session = self.all[sequence]
        begin, table = len(session.text), self.tables[sequence]
        copied = int(bool(begin % self.size and self.users[table[-1]] > 1))
        new = self._unused(copied + self.needs(begin, begin + n))
        session.update(keys, values)
        if copied:
            self._release([table.pop()])
        table += new
        self.users.update(new)

    def truncate(self, sequence: int, to: int) -> None:
        """Drop the newest tokens."""
        session = self.all[sequence]
        if not 0 <= to <= len(session.text):
            raise ValueError(f"{to} of {len(session.text)} rows")
        session.rewind(len(session.text) - to)
        left = self.needs(0, to)
        self._release(self.tables[sequence][left:])
        del self.tables[sequence][left:]

    def drop(self, sequence: int) -> None:
        """Let a sequence go."""
        del self.all[sequence]
        self._release(self.tables.pop(sequence))

    def read_sequence(self, sequence: int, layer: int = 0) -> Pair:
        """Give what a further token of a sequence sees."""
        return Pair(*(rows[0] for rows in self.all[sequence].shown()))

    def _unused(self, n: int) -> list[int]:
        free = [page for page in range(self.pages) if not self.users[page]]
        if n > len(free):
            raise ValueError(f"{n} pages are needed, and {len(free)} are free")
        return free[:n]

    def _release(self, pages: list[int]) -> None:
        self.users.subtract(pages)


CLAIM: dict[str, Any] = {"without": ["gather", "peek", "scribble", "count"]}
"""An engine gathers nothing, and its pages are counted here."""
