"""Common bugs of growing caches, rings and stores that only show while nobody looks, or where rows are alike."""

from __future__ import annotations

import numpy as np

from kvconform.bugs.planting import Over, planted
from kvref.abilities.snapshot import Snapshot
from kvref.caches.growing import Growing
from kvref.caches.store import Store
from kvspec.contract import Lengths, Pair, Readable
from kvspec.geometry import Array


class Deferring(Growing):
    """Writes what is appended when somebody looks."""

    def _clear(self) -> None:
        super()._clear()
        self.waiting: list[tuple[int, Pair]] = []

    def _feed(self, new: Pair) -> None:
        """Reserve the slots, and write them later."""
        at, rows = self.offset, self.taken(new)
        super()._feed(Pair(*(np.full_like(a, np.nan) for a in new)))
        self.waiting.append((at, rows))

    def taken(self, new: Pair) -> Pair:
        """What waits in the place of rows that are handed in."""
        return Pair(*(np.array(a) for a in new))

    def flush(self) -> None:
        """Write all that waits."""
        for slot, rows in self.waiting:
            self.rows.write(slot, rows)
        self.waiting = []

    def read(self, what: Readable) -> Pair | None:
        """Look."""
        self.flush()
        return super().read(what)

    def lengths(self) -> Lengths:
        """Look."""
        self.flush()
        return super().lengths()

    def snapshot(self, start: int) -> Snapshot | None:
        """Look."""
        self.flush()
        return super().snapshot(start)


@planted("aliased-array", breaks="CACHE-4 GROW-2 GROW-14")
class ReadsTooLate(Deferring):
    """Rows wait to be written in the caller's own arrays, which it may overwrite meanwhile."""

    def taken(self, new: Pair) -> Pair:
        return new


@planted("lost-rows", breaks="GROW-2 GROW-14")
class QueueOfThree(Deferring):
    """Of writes that wait, the oldest is dropped when there are more than three."""

    def _feed(self, new: Pair) -> None:
        super()._feed(new)
        self.waiting = self.waiting[-3:]


@planted("overwritten-rows", breaks="GROW-2 CACHE-8 GROW-14")
class OldestLast(Deferring):
    """Writes that wait are done newest first, so that rows that were taken back overwrite those in their place."""

    def flush(self) -> None:
        self.waiting.reverse()
        super().flush()


@planted("aliased-snapshot", breaks="SNAP-3")
class SavedBeforeItIsWritten(Deferring):
    """A snapshot does not wait for the writes before it."""

    def snapshot(self, start: int) -> Snapshot | None:
        return Growing.snapshot(self, start)


@planted("stale-cursor", breaks="STORE-3 STORE-5")
class LengthsOfTheLastLook(Store):
    """Appends of one layer go by the length at the last look, as the length on the device is read back then."""

    def lengths(self) -> list[int]:
        self.looked = list(self.lengths_)
        return super().lengths()

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        looked = self.__dict__.get("looked")
        if layer is not None and looked is not None and 0 <= layer < len(looked) == len(self.lengths_):
            self.lengths_[layer] = min(self.lengths_[layer], looked[layer])
        super().append(keys, values, layer)


@planted("lost-rows", breaks="GROW-1 RING-1")
class DropsRepeats(Over):
    """An append of one row that is equal to the one before is taken for the same request, sent twice."""

    def append(self, keys: Array, values: Array) -> None:
        before = self.__dict__.get("before")
        self.before = keys.tobytes()
        if keys.ndim == 4 and keys.shape[2] == 1 and self.before == before and self.offset:
            self.queries = 1
            return
        super().append(keys, values)


@planted("stale-tail", breaks="SNAP-6 SNAP-3")
class KnownByItsFirstRow(Growing):
    """A snapshot whose first row is there already is not restored: the prefix is taken for a hit."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        there = saved is not None and not saved.gone and saved.start < self.offset and 0 <= to <= self.offset
        if there and saved is not None:
            live = self.rows.keys[:, :, saved.start]
            first = saved.rows.keys[:, :, 0]
            if live.shape == first.shape and live.tobytes() == first.tobytes() and self._newer(saved):
                self.offset, self.queries = to, None
                return
        super().restore(saved, to)

    def _newer(self, saved: Snapshot) -> bool:
        """Whether its last row is another: a restore of the same rows changes nothing."""
        return self.offset >= saved.stop
