"""Common bugs of growing caches and their snapshots, planted though nobody reported them here."""

from __future__ import annotations

import numpy as np

from kvref.growing import Growing
from kvref.rows import count
from kvref.snapshot import Snapshot
from kvspec.contract import Pair, Readable


class GrowingRewindsNowhere(Growing):
    """A rewind succeeds and changes nothing."""

    def rewind(self, to: int) -> None:
        before = self.offset
        super().rewind(to)
        self.offset = before


class GrowingRewindsOneShort(Growing):
    """A rewind leaves one row too many."""

    def rewind(self, to: int) -> None:
        before = self.offset
        super().rewind(to)
        self.offset = min(before, to + 1)


class GrowingRewindsTooFar(Growing):
    """A rewind drops one row too many."""

    def rewind(self, to: int) -> None:
        before = self.offset
        super().rewind(to)
        self.offset = max(0, to - (to < before))


class GrowingClamps(Growing):
    """A rewind to a target that there is not goes to the nearest there is."""

    def rewind(self, to: int) -> None:
        super().rewind(min(max(0, to), self.offset))


class GrowingStaleCursor(Growing):
    """A rewind moves the offset, and the next rows are written behind the old tail."""

    def _clear(self) -> None:
        super()._clear()
        self.cursor = 0

    def _feed(self, new: Pair) -> None:
        offset, self.offset = self.offset, max(self.offset, self.cursor)
        super()._feed(new)
        self.cursor, self.offset = self.offset, offset + count(new)


def unwritten(like: Pair) -> Pair:
    """A row that nobody wrote."""
    return Pair(*(np.full_like(a[:, :, :1], np.nan) for a in like))


class GrowingSkips(Growing):
    """The first single row after a chunk goes one slot too far."""

    chunk = False

    def _feed(self, new: Pair) -> None:
        if self.chunk and count(new) == 1:
            super()._feed(unwritten(new))
        self.chunk = count(new) > 1
        super()._feed(new)


class GrowingSkipsAlways(Growing):
    """Every append of one row to rows that there are leaves a slot out."""

    def _feed(self, new: Pair) -> None:
        if self.offset and count(new) == 1:
            super()._feed(unwritten(new))
        super()._feed(new)


class GrowingForgets(Growing):
    """Growth takes new memory, and leaves the rows in the old one."""

    def _feed(self, new: Pair) -> None:
        before, slots = self.offset, len(self.rows)
        super()._feed(new)
        if len(self.rows) != slots:
            self.rows.write(0, Pair(*(a[:, :, :before] * 0 for a in (self.rows.keys, self.rows.values))))


class GrowingForgetsOne(Growing):
    """Growth carries over all rows but the newest."""

    def _feed(self, new: Pair) -> None:
        before, slots = self.offset, len(self.rows)
        super()._feed(new)
        if before and len(self.rows) != slots:
            self.rows.write(before - 1, unwritten(new))


class GrowingShowsAll(Growing):
    """The history is the whole buffer, spare capacity too."""

    def read(self, what: Readable) -> Pair | None:
        return self.rows.read(0, len(self.rows)) if what == "history" and self.written else super().read(what)


class GrowingSavesOneLess(Growing):
    """A snapshot lacks the newest row."""

    def snapshot(self, start: int) -> Snapshot | None:
        self.offset -= self.offset > 0
        try:
            return super().snapshot(start)
        finally:
            self.offset += self.written


class GrowingKeepsItsTail(Growing):
    """After a restore the rows that lay beyond are still there."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        before = self.offset
        super().restore(saved, to)
        self.offset = max(before, self.offset)


class GrowingSplitsLater(Growing):
    """A split cuts one row behind the position asked for."""

    def split(self, saved: Snapshot | None, at: int) -> tuple[Snapshot | None, Snapshot | None]:
        later = saved is not None and saved.start < at < saved.stop - 1
        return super().split(saved, at + later)
