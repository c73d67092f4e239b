"""A growing cache that writes late: new rows wait in a queue, where reads look for them."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from kvref.caches.growing import Growing
from kvref.memory.rows import Rows, count
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config
from kvworkshop.fakes import Fake

WAITING = 3
"""Most writes that wait."""


class Write(NamedTuple):
    """Rows on their way to the slots from `slot` on."""

    slot: int
    rows: Pair

    def onto(self, rows: Pair, first: int) -> None:
        """Write them to an array whose first slot is slot `first`, as far as it has their slots."""
        start, stop = max(self.slot, first), min(self.slot + count(self.rows), first + count(rows))
        for target, source in zip(rows, self.rows, strict=True):
            if start < stop:
                target[:, :, start - first : stop - first] = source[:, :, start - self.slot : stop - self.slot]


class LateRows:
    """Slots of rows, some of them written and some of them waiting. The oldest write is done when there are too
    many, and growth is done with it."""

    def __init__(self, config: Config) -> None:
        self.config, self.slots = config, 0
        self.written = self._empty(0)
        self.waiting: list[Write] = []

    def _empty(self, slots: int) -> Pair:
        """Memory that was never written, filled with NaN."""
        return Pair(*(np.full(self.config.shape(k, slots), np.nan, DTYPES[self.config.dtype]) for k in "kv"))

    def __len__(self) -> int:
        return self.slots

    def grow(self, slots: int, live: int) -> None:
        """Promise this many slots."""
        self.slots = slots

    def write(self, slot: int, new: Pair) -> None:
        """Queue a copy of the rows. Do the oldest write if too many wait."""
        self.waiting.append(Write(slot, Pair(*(np.array(a) for a in new))))
        while len(self.waiting) > WAITING:
            self._do(self.waiting.pop(0))

    def _do(self, oldest: Write) -> None:
        """Write to memory that has all slots that were promised."""
        if count(self.written) < self.slots:
            old, self.written = self.written, self._empty(self.slots)
            Write(0, old).onto(self.written, 0)
        oldest.onto(self.written, 0)

    def read(self, start: int, stop: int) -> Pair:
        """Copies of the rows in slots start..stop-1: what is written, and over it what waits, oldest first."""
        rows = self._empty(stop - start)
        for write in (Write(0, self.written), *self.waiting):
            write.onto(rows, start)
        return rows

    copy = read

    @property
    def keys(self) -> Array:
        """Keys of all slots."""
        return self.read(0, self.slots).keys

    @property
    def values(self) -> Array:
        """Values of all slots."""
        return self.read(0, self.slots).values

    def shown(self, slots: list[int]) -> Pair:
        """The rows in these slots, in this order. The host is the device."""
        return Pair(*(a[:, :, slots] for a in self.read(0, self.slots)))

    def taken(self, slots: list[int]) -> Rows:
        """The rows in these slots, in this order, as storage of their own."""
        made = Rows(self.config)
        made.join(Pair(*(a[:, :, slots] for a in self.read(0, self.slots))))
        return made


class LateGrowing(Growing):
    """A growing cache over such rows."""

    def _clear(self) -> None:
        super()._clear()
        self.rows: Any = LateRows(self.config)


class LazyWrites(Fake):
    """A growing cache that queues what is appended and writes it later; what is taken back was often never
    written."""

    growing: ClassVar[Any] = LateGrowing
    chapters: ClassVar[dict[str, Any]] = {
        "growing": {"level": "storage", "grows": "step"},
        **dict.fromkeys(("mask", "snapshot", "draft", "attention", "rope"), "storage"),
    }
