"""Common bugs of rings, their snapshots and their masks, planted though nobody reported them here."""

from __future__ import annotations

import numpy as np

from kvref import masks
from kvref.ring import Ring
from kvref.snapshot import Snapshot
from kvspec.contract import Pair
from kvspec.geometry import Array, Config
from kvspec.masks import Logical
from kvspec.refusals import common


class RingStaleCursor(Ring):
    """A rewind moves the offset, and leaves the write cursor where it was."""

    def rewind(self, to: int) -> None:
        index = self.index
        super().rewind(to)
        self.index = index


class RingRewindsNowhere(Ring):
    """A rewind succeeds and changes nothing."""

    def rewind(self, to: int) -> None:
        before = self.offset, self.index
        super().rewind(to)
        self.offset, self.index = before


class RingRewindsOneShort(Ring):
    """A rewind leaves one row too many."""

    def rewind(self, to: int) -> None:
        before = self.offset
        super().rewind(to)
        if to < before:
            self.offset = self.index = to + 1


class RingRefusesWhenFull(Ring):
    """A rewind is refused as soon as the window is full, though nothing was overwritten yet."""

    def rewind(self, to: int) -> None:
        if 0 <= to < self.offset == self.window and not self.in_round:
            raise common.rewind_window("RING-10", to, self.offset, self.window)
        super().rewind(to)


class RingOneWide(Ring):
    """The window is one row wider than it was asked for."""

    def __init__(self, config: Config) -> None:
        wide = config.changed(window=config.window + 1) if config.window and config.window > 0 else config
        super().__init__(wide)


class RingOneNarrow(Ring):
    """The window is one row narrower than it was asked for."""

    def __init__(self, config: Config) -> None:
        narrow = config.changed(window=config.window - 1) if config.window and config.window > 1 else config
        super().__init__(narrow)


class RingKeeping(Ring):
    """An append of several rows keeps another number of old ones."""

    def kept(self) -> int:
        raise NotImplementedError

    def _prefill(self, new: Pair) -> None:
        self._straighten()
        self.rows.join(new, max(0, len(self.rows) - max(0, self.kept())))
        self.index = len(self.rows)


class RingKeepsOneMore(RingKeeping):
    """An append of several rows keeps one old row too many."""

    def kept(self) -> int:
        return self.window


class RingKeepsOneLess(RingKeeping):
    """An append of several rows keeps one old row too few."""

    def kept(self) -> int:
        return self.window - 2


class RingKeepsNone(RingKeeping):
    """An append of several rows drops all that were there."""

    def kept(self) -> int:
        return 0


class RingEvictsFirst(Ring):
    """Of a long append no more rows stay than the window holds, before its first queries have seen the others."""

    def _prefill(self, new: Pair) -> None:
        super()._prefill(new)
        self.rows.keep(max(0, len(self.rows) - self.window), len(self.rows))
        self.index = len(self.rows)


class RingInSlotOrder(Ring):
    """An append of several rows to a ring that has wrapped leaves the old ones in slot order."""

    def _straighten(self) -> None:
        if self.offset <= self.window:
            super()._straighten()


class RingViewInSlotOrder(Ring):
    """The view comes in slot order."""

    def _newest(self) -> list[int]:
        return sorted(super()._newest())


class RingMaskUnturned(Ring):
    """With one query a mask stays in position order, and the rows are in slot order."""

    def mask(self, logical: Logical) -> Array | None:
        made = super().mask(logical)
        if made is None or self.queries != 1:
            return made
        return masks.in_position_order(logical, self.config.batch, 1, self.buffered)


class RingMaskOneOff(Ring):
    """With one query a mask is turned by the index that there was before the append."""

    def mask(self, logical: Logical) -> Array | None:
        made = super().mask(logical)
        if made is None or self.queries != 1 or made.shape[3] == 1:
            return made
        return np.roll(made, -1, axis=3)


class RingOverwritesTheNewest(Ring):
    """Once the ring is full, a single row takes the place of the newest one instead of the oldest."""

    def _decode(self, new: Pair) -> None:
        if self.index == self.window == len(self.rows):
            self.index -= 1
        super()._decode(new)


class RingWrapsToOne(Ring):
    """The ring wraps to the slot behind its first."""

    def _decode(self, new: Pair) -> None:
        if self.index == self.window == len(self.rows) > 1:
            self.index = 1
        super()._decode(new)


class RingKeepsTheOldest(Ring):
    """Where a long append is cut down to the window, its oldest rows are kept."""

    def _decode(self, new: Pair) -> None:
        if len(self.rows) > self.window:
            self.rows.keep(0, self.window)
            self.index = self.window
        super()._decode(new)


class RingMovedByNothing(Ring):
    """An append of no rows to a full ring moves the write cursor."""

    def append(self, keys: Array, values: Array) -> None:
        super().append(keys, values)
        if self.queries == 0 and self.index == self.window:
            self.index = 0


class RingFreesHalf(Ring):
    """Freeing makes the offset 0, and leaves the slots and the write cursor as they are."""

    def free(self) -> None:
        kept = self.rows, self.index
        super().free()
        self.rows, self.index = kept


class RingRestoresNoOffset(Ring):
    """A restore brings the rows back, and counts the offset from them."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        super().restore(saved, to)
        if saved is not None:
            self.offset = min(self.offset, len(self.rows))
