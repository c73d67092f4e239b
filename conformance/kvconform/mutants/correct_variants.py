"""Correct caches whose storage differs from the reference's; the suite must pass them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kvadapters.reference import Reference
from kvconform.mutants.fakes import Fake
from kvref import snapshot
from kvref.cite import cite
from kvref.growing import Growing
from kvref.memory import meter
from kvref.memory.page_pool import Pool
from kvref.page import Pages
from kvref.ragged import Ragged
from kvref.snapshot import Snapshot
from kvref.store import Store
from kvspec.contract import Lengths, Pair, Readable
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Array, Config
from kvspec.masks import Logical, Window
from kvspec.refusals import common

VISIBLE_RING = {"level": "visible", "rewind": -1}


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


class WholeRing(Growing):
    """A ring that keeps the whole history, masks the window, and can therefore rewind to anywhere."""

    kind = "ring"

    def __init__(self, config: Config) -> None:
        if not common.valid(config):
            raise Refused("RING-14", "no such ring")
        super().__init__(config)
        self.window = config.window or 1

    def append(self, keys: Array, values: Array) -> None:
        """Refuse under the ring's own clause."""
        if keys.shape[2] and not common.fits(self.config, Pair(keys, values)):
            raise Refused("RING-13", "rows of another geometry")
        super().append(keys, values)

    def read(self, what: Readable) -> Pair | None:
        """All rows; of the view the newest W-1."""
        pair, first = super().read(what), max(0, self.offset - self.window + 1)
        return pair if what != "view" or pair is None else Pair(*(a[:, :, first:] for a in pair))

    def mask(self, logical: Logical) -> Array | None:
        """The window is part of every mask."""
        return super().mask((*logical, Window(self.window)))

    def rewind(self, to: int) -> None:
        """To anywhere."""
        if not 0 <= to <= self.offset:
            raise Refused("RING-9", "beyond the ends")
        super().rewind(to)

    def lengths(self) -> Lengths:
        """The offset alone: how much is kept is its own affair."""
        return Lengths(self.offset)

    def snapshot(self, start: int) -> Snapshot | None:
        """All rows, or none."""
        return super().snapshot(start if start >= self.offset else 0)

    def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None:
        """The newer of two."""
        pieces = snapshot.pieces("merge", (parent, child), self.kind, self.config)
        for other in pieces[:-1]:
            other.consume()
        return pieces[-1].handed_on() if pieces else None

    def split(self, saved: Snapshot | None, at: int) -> tuple[Snapshot | None, Snapshot | None]:
        """Nothing, and all."""
        return super().split(saved, 0)


class Whole(Fake):
    """A ring that keeps the whole history and masks the window, at level visible; it can rewind to anywhere."""

    ring: ClassVar[Any] = WholeRing
    chapters: ClassVar[dict[str, Any]] = {"ring": VISIBLE_RING, "mask": "visible", "snapshot": "visible"}


class HeadMajorStore(Store):
    """A store with heads outermost: all layers of a head lie together in one array for keys and one for values."""

    def _allocate(self, config: Config, zeroed_by: str) -> None:
        cite(zeroed_by)
        assert config.layers is not None and config.max_len is not None
        self.config, self.max_len, self.zeroed_by = config, config.max_len, zeroed_by
        self.keys, self.values = (_by_head(config, kind, config.layers, config.max_len) for kind in "kv")
        self.lengths_ = [0] * config.layers


def _by_head(config: Config, kind: str, layers: int, rows: int) -> list[Array]:
    """For each layer its rows `[kv_heads, max_len, dim]`, all in one array `[kv_heads, layers, max_len, dim]`."""
    _, heads, _, dim = config.shape(kind, rows)
    whole = meter.zeros((heads, layers, rows, dim), DTYPES[config.dtype])
    return [whole[:, layer] for layer in range(layers)]


class HeadMajor(Reference):
    """A store that keeps all rows of a head together, layer after layer; batches work over it as over any
    store."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "store": HeadMajorStore}


class PoolFromTheTop(Pool):
    """A pool that takes the highest page that is free."""

    def take(self) -> int:
        """The highest page that no table has, for one."""
        cite("PAGE-12")
        page = len(self.counts) - 1 - self.counts[::-1].index(0)
        self.counts[page] = 1
        return page


class PagesFromTheTop(Pages):
    """A paged cache over such a pool."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.pool = PoolFromTheTop(config)


class FromTheTop(Reference):
    """A paged cache that takes the highest free page first, at level visible."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "page": PagesFromTheTop}

    def describe(self) -> dict[str, Any]:
        """The reference's claims, but for the level of pages."""
        said = super().describe()
        return {**said, "chapters": {**said["chapters"], "page": "visible"}}


class RaggedBlockWithMore(Ragged):
    """A ragged cache whose block has a column in front that nobody owns, and rows of other sequences in padding;
    its mask has queries that are padding see everything."""

    def history(self) -> Pair:
        """The rows of the next sequence where there is padding, and one column more."""
        owned = [range(start, start + n) for start, n in zip(super().starts(), self.lengths, strict=True)]
        return Pair(*(_with_more(a, owned) for a in super().history()))

    def starts(self) -> list[int]:
        """Behind the column in front."""
        return [start + 1 for start in super().starts()]

    def mask(self) -> Array:
        """Behind that column as ever; of padding everything."""
        assert self.fed is not None
        start = np.array(self.starts())[:, None, None]
        place = np.arange(self.width + 1) - start
        seen = (place >= 0) & (place <= self.fed[:, :, None])
        return np.asarray(seen | (self.fed < 0)[:, :, None])[:, None]


def _with_more(block: Array, owned: list[range]) -> Array:
    """A block in whose padding there are rows of the next sequence, behind a copy of its last column."""
    made = np.concatenate([block[:, :, -1:], block], axis=2)
    for s, own in enumerate(owned):
        padding = [column + 1 for column in range(block.shape[2]) if column not in own]
        made[s][:, padding] = block[(s + 1) % len(owned)][:, :1]
    return made


class MoreThanRagged(Reference):
    """A ragged cache that hands out more than it must, at level visible."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "ragged": RaggedBlockWithMore}

    def describe(self) -> dict[str, Any]:
        """The reference's claims, but for the level of ragged caches."""
        said = super().describe()
        return {**said, "chapters": {**said["chapters"], "ragged": "visible"}}


VARIANTS: dict[type[Any], tuple[str, ...]] = {
    Linked: ("growing", "mask", "snapshot"),
    Whole: ("ring", "mask", "snapshot"),
    HeadMajor: ("store", "batch", "mem", "attention"),
    FromTheTop: ("page",),
    MoreThanRagged: ("ragged",),
}
"""Each correct variant, and the chapters whose traces are tried on it."""
