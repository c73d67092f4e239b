"""A growing cache whose rows hang in a linked list of chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kvref.caches.growing import Growing
from kvspec.contract import Lengths, Pair
from kvspec.geometry import DTYPES, Config
from kvworkshop.fakes import Fake


@dataclass
class Chunk:
    """A few rows, and the chunk of those before them."""

    rows: Pair
    before: Chunk | None


class Chunks:
    """Rows in a linked list of chunks, the newest first: nothing is ever moved, and nothing is spare."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.newest: Chunk | None = None

    def _all(self) -> Iterator[Pair]:
        """The rows of all chunks, newest chunk first."""
        chunk = self.newest
        while chunk is not None:
            yield chunk.rows
            chunk = chunk.before

    def __len__(self) -> int:
        return sum(rows.keys.shape[2] for rows in self._all())

    def grow(self, slots: int, live: int) -> None:
        """Nothing is made ahead of need."""

    def write(self, slot: int, new: Pair) -> None:
        """Drop what lies from a slot on, whole chunks and part of one, and hang new rows behind the rest."""
        while self.newest is not None and len(self) > slot:
            chunk, first = self.newest, len(self) - self.newest.rows.keys.shape[2]
            self.newest = chunk.before
            if first < slot:
                kept = Pair(*(a[:, :, : slot - first].copy() for a in chunk.rows))
                self.newest = Chunk(kept, chunk.before)
        self.newest = Chunk(Pair(*(np.array(a) for a in new)), self.newest)

    def read(self, start: int, stop: int) -> Pair:
        """Copies of the rows in slots start..stop-1."""
        empty = Pair(*(np.empty(self.config.shape(kind, 0), DTYPES[self.config.dtype]) for kind in "kv"))
        whole = [empty, *list(self._all())[::-1]]
        return Pair(*(np.concatenate(parts, axis=2)[:, :, start:stop] for parts in zip(*whole, strict=True)))

    copy = read


class LinkedGrowing(Growing):
    """A growing cache over chunks."""

    def _clear(self) -> None:
        super()._clear()
        self.rows: Any = Chunks(self.config)

    def lengths(self) -> Lengths:
        """As many rows as are in chunks: those behind the offset are there until they are written over."""
        return Lengths(self.offset, self.offset, self.offset, max(len(self.rows), self.offset))


class Linked(Fake):
    """A growing cache that keeps its rows in a linked list of chunks, and declares that it grows as it
    likes."""

    growing = LinkedGrowing
    chapters: ClassVar[dict[str, Any]] = dict.fromkeys(("growing", "mask", "snapshot"), "storage")
