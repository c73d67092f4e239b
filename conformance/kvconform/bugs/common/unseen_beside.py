"""Common bugs of blocks, pages, buffers and buckets that only show while nobody looks, or where rows are alike."""

from __future__ import annotations

from collections.abc import Sequence

from kvconform.bugs.planting import planted
from kvref.abilities.transfers import Numbered
from kvref.caches.bucket import Bucket
from kvref.caches.copy import Buffer
from kvref.caches.page import Pages
from kvref.caches.ragged import Ragged
from kvref.memory.compiled_graph import Handles
from kvspec.contract import Pair, Readable
from kvspec.geometry import Array, Config


@planted("wrong-sequence", breaks="RAGGED-16 RAGGED-17")
class LastOrderOnly(Ragged):
    """An order of sequences is carried out when somebody looks; of two that wait, only the last one is."""

    before: Pair | None = None

    def filter(self, order: Sequence[int]) -> None:
        waiting, self.before = self.before, Pair(*(a.copy() for a in self.block))
        super().filter(order)
        if waiting is not None and waiting.keys.shape[2] == self.width:
            for block, old in zip(self.block, waiting, strict=True):
                block[...] = old[list(order)]

    def feed(self, keys: Array, values: Array, lengths: Sequence[int]) -> None:
        super().feed(keys, values, lengths)
        self.before = None

    def sequences(self) -> list[int]:
        """Look."""
        self.before = None
        return super().sequences()


@planted("wrong-sequence", breaks="RAGGED-3 RAGGED-24")
class BeamsAlike(Ragged):
    """Sequences that end with equal rows are taken for beams of one, and share the rows of the first."""

    def feed(self, keys: Array, values: Array, lengths: Sequence[int]) -> None:
        super().feed(keys, values, lengths)
        first = dict[bytes, int]()
        for s in range(len(self.lengths)):
            last = self._rows(s).keys[:, -1:].tobytes()
            like = first.setdefault(last, s)
            for block in self.block if last else ():
                block[s] = block[like]


@planted("wrong-page", breaks="PAGE-18 PAGE-6")
class ForkNotYetCounted(Pages):
    """A fork is counted when somebody looks: until then a write to a shared page does not copy it."""

    looked = True

    def fork(self, sequence: int, n: int) -> int:
        made = super().fork(sequence, n)
        self.looked = False
        return made

    def _shared(self, to: Numbered) -> bool:
        return self.looked and super()._shared(to)

    def sequences(self) -> list[int]:
        """Look."""
        self.looked = True
        return super().sequences()


@planted("wrong-page", breaks="PAGE-17 PAGE-18")
class SharesUncounted(Pages):
    """A full page that is equal to another's is given up for that one, which nobody counts."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.by_rows: dict[bytes, int] = {}

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        full = self.in_use[sequence].length // self.pool.size if sequence in self.in_use else 0
        super().append(keys, values, sequence)
        if sequence in self.in_use and keys.shape[2]:
            self._share(self.in_use[sequence], full)

    def _share(self, of: Numbered, begin: int) -> None:
        """Give up each page that was filled by an append."""
        for i in range(begin, of.length // self.pool.size):
            mine, rows = of.table[i], self.pool.keys[of.table[i]].tobytes()
            page = self.by_rows.get(rows, mine)
            if page != mine and self.pool.counts[page] and self.pool.keys[page].tobytes() == rows:
                self.pool.give([mine])
                of.table[i] = page
            self.by_rows[rows] = of.table[i]


@planted("aliased-array", breaks="CACHE-4 COPY-4 COPY-5 COPY-9 COPY-11")
class CopiesTooLate(Buffer):
    """A copy waits in the caller's own arrays until somebody looks."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.waiting: list[tuple[int, Pair]] = []

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        self.waiting.append((slot, Pair(*(a[i] for a in rows))))

    def read(self, what: Readable) -> Pair:
        """Look."""
        for slot, row in self.waiting:
            super()._write(slot, Pair(*(a[None] for a in row)), 0)
        self.waiting = []
        return super().read(what)


@planted("lost-rows", breaks="COPY-4 COPY-5 COPY-9 COPY-11")
class WrittenOnce(Buffer):
    """A row that was written somewhere is known, and not written again."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.known = set[bytes]()

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        row = rows.keys[i].tobytes()
        if row not in self.known:
            super()._write(slot, rows, i)
        self.known.add(row)


@planted("stale-tail", breaks="BUCKET-4 BUCKET-18 BUCKET-21 BUCKET-33")
class MovesOneRowALook(Bucket):
    """The row behind the padding is moved to its slot by the first step after a look alone."""

    looked = True

    def _compact(self, handles: Handles) -> None:
        self.pending = self.pending and self.looked
        super()._compact(handles)
        self.looked = False

    def past(self) -> int:
        """Look."""
        self.looked = True
        return super().past()
