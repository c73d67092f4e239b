"""A ring whose window lies in pages of a small pool. The first page goes back when the window has left it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from kvref.abilities import masks, snapshot
from kvref.abilities.draft import Layer, Round, speculative
from kvref.abilities.snapshot import Snapshot
from kvref.memory.rows import Rows, count
from kvspec.contract import Lengths, Pair, Readable
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Array, Config
from kvspec.masks import Logical, Window
from kvspec.refusals import common
from kvworkshop.correct_variants.whole import MaskedRing
from kvworkshop.fakes import Fake

PAGE = 3
"""Slots of a page."""

BACK = 2
"""Rows by which it can be rewound past its window."""


class WindowPages:
    """A pool, and the pages in it that hold the positions from `first` on."""

    def __init__(self, config: Config, rows: int, first: int = 0) -> None:
        """Of pages for this many rows, wherever in a page they begin."""
        pages = -(-rows // PAGE) + 1
        shapes = (config.shape(kind, pages * PAGE) for kind in "kv")
        self.keys, self.values = (np.full(shape, np.nan, DTYPES[config.dtype]) for shape in shapes)
        self.free, self.table = list(range(pages)), list[int]()
        self.first = first

    def slots(self, start: int, stop: int) -> list[int]:
        """The slots of these positions."""
        places = (divmod(position - self.first, PAGE) for position in range(start, stop))
        return [self.table[page] * PAGE + slot for page, slot in places]

    def write(self, start: int, new: Pair) -> None:
        """Put rows at the positions from `start` on, in pages that were free the longest."""
        stop = start + count(new)
        while self.first + len(self.table) * PAGE < stop:
            self.table.append(self.free.pop(0))
        for memory, rows in zip((self.keys, self.values), new, strict=True):
            memory[:, :, self.slots(start, stop)] = rows

    def gather(self, slots: list[int]) -> Pair:
        """Copies of the rows in these slots, in this order."""
        return Pair(self.keys[:, :, slots], self.values[:, :, slots])

    shown = gather  # the host is the device

    def keep(self, start: int, stop: int) -> None:
        """Give back the pages that hold no position in start..stop-1."""
        while self.table and self.first + PAGE <= start:
            self.free.append(self.table.pop(0))
            self.first += PAGE
        while self.first + (len(self.table) - 1) * PAGE >= stop and self.table:
            self.free.append(self.table.pop())


@speculative
class RingOfPages(MaskedRing):
    """Keeps what a rewind by BACK rows needs, and what else is on its pages; hands it out in the order of slots."""

    rows: Any

    def _clear(self) -> None:
        super()._clear()
        self.rows, self.highest = self._pool(0), 0

    def _pool(self, first: int) -> WindowPages:
        """A pool for an append as large as any, behind what is kept before it."""
        return WindowPages(self.config, 3 * self.window + BACK + PAGE, first)

    def demand_rows(self, new: Pair) -> None:
        """Refuse rows that do not fit, or more than two windows at once."""
        super().demand_rows(new)
        if count(new) > 2 * self.window:
            raise Refused("RING-3", f"append of {count(new)} rows: at most {2 * self.window} at once")

    def _feed(self, new: Pair) -> None:
        """Write rows behind the offset, where pages that are needed no more may be written over."""
        self.rows.keep(self.offset - self.window + 1 - BACK, self.offset)
        self.rows.write(self.offset, new)
        self.offset += count(new)
        self.highest = max(self.highest, self.offset)
        self.written = True

    def read(self, what: Readable) -> Pair | None:
        """All rows held, in the order of their slots; the view's in that of their positions."""
        if what == "view" and not self.written:
            return None
        slots = self._slots(self.window - 1) if what == "view" else sorted(self._slots(self.offset))
        return Pair(*self.rows.gather(slots))

    def _slots(self, newest: int) -> list[int]:
        """The slots of the newest rows, this many or all that are held, oldest first."""
        return list(self.rows.slots(max(self.rows.first, self.offset - newest), self.offset))

    def in_order(self) -> list[int]:
        """The slots of the rows that an attend is about, oldest first."""
        n = self.queries or 0
        return self._slots(min(self.offset - n, self.window - 1) + n)

    def aside(self) -> Rows:
        """A copy of the rows that a next query would find beside itself."""
        made = Rows(self.config)
        made.join(self.rows.gather(self._slots(self.window - 1)))
        return made

    def held_after(self, n: int) -> int:
        """How many rows an attend of n rows is about."""
        kept: int = min(self.offset, self.window - 1)
        return kept + n

    def mask(self, logical: Logical) -> Array | None:
        """The window is part of every mask. Columns are in the order of slots."""
        if self.queries is None:
            raise common.no_history("MASK-1")
        slots = self._slots(self.offset)
        logical = (*logical, Window(self.window))
        mask = masks.in_position_order(logical, self.config.batch, self.queries, len(slots))
        return mask if mask is None or mask.shape[3] == 1 else mask[..., np.argsort(slots)]

    def lengths(self) -> Lengths:
        """All rows held are retained and buffered."""
        held = len(self._slots(self.offset))
        return Lengths(self.offset, held, held, self.rows.keys.shape[2])

    def _reaches(self, to: int, end: int, highest: int) -> bool:
        """Whether a ring that stands at `end` can go back to `to`."""
        return to == end or highest <= self.window or highest - to <= BACK

    def can_rewind(self, to: int) -> bool:
        """Whether a rewind to this target would be accepted."""
        return 0 <= to <= self.offset and self._reaches(to, self.offset, self.highest)

    def rewind(self, to: int) -> None:
        """Make `to` the offset; pages behind it are free."""
        if not 0 <= to <= self.offset:
            raise common.rewind_range("CACHE-7", to, self.offset)
        if not self.can_rewind(to):
            raise common.rewind_window("RING-10", to, self.offset, self.window)
        self._cut(to)

    def _cut(self, to: int) -> None:
        self.rows.keep(self.rows.first, to)
        self.offset, self.queries = to, None

    def snapshot(self, start: int) -> Snapshot | None:
        """All rows held. The highest offset takes the place of a ring's index."""
        if max(0, start) >= self.offset:
            return None
        first, rows = self.rows.first, self.rows.gather(self._slots(self.offset))
        return Snapshot(self.kind, self.config, rows, first, self.offset, self.highest)

    def restore(self, saved: Snapshot | None, to: int) -> None:
        """A new pool with the saved rows, cut at the target."""
        if saved is None:
            self.rewind(to)
            return
        snapshot.check("restore", saved, self.kind, self.config)
        if not 0 <= to <= saved.stop:
            raise common.restore_range("SNAP-8", to, saved.stop)
        if not self._reaches(to, saved.stop, saved.index):
            raise common.restore_window("SNAP-13", to, saved.stop, self.window)
        self.rows, self.offset, self.highest = self._pool(saved.start), saved.stop, saved.index
        self.rows.write(saved.start, saved.rows)
        self.written = True
        self._cut(to)


class LayerInPieces(Layer):
    """A layer of a round, whose drafts are kept by as many appends as they need."""

    def keep(self, n: int) -> None:
        """Append the first n drafts to the cache."""
        drafts, most = range(self.before, self.before + n), 2 * self.cache.window
        for first in drafts[::most]:
            self.cache.append(*self.rows.part(first, min(first + most, drafts.stop)))


class PagedRing(Fake):
    """A ring over a block table and a small pool of pages, at level visible. It takes two windows at once, and can
    go back two rows past its window."""

    ring: ClassVar[Any] = RingOfPages
    chapters: ClassVar[dict[str, Any]] = {
        "ring": {"level": "visible", "rewind": BACK, "chunk": "2 * window"},
        **dict.fromkeys(("mask", "snapshot", "draft", "attention", "rope"), "visible"),
    }

    def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
        """A round that can keep any number of its drafts."""
        made = super().speculate(caches, isolated)
        made.layers = {i: LayerInPieces(layer.cache) for i, layer in made.layers.items()}
        return made
