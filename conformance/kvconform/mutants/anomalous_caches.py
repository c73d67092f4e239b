"""Common bugs of growing caches and rings, of their snapshots and masks, planted though nobody reported them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Protocol, cast

import ml_dtypes
import numpy as np

from kvref import masks
from kvref.growing import Growing
from kvref.ring import Ring
from kvref.rows import count
from kvref.snapshot import Snapshot
from kvspec import refusals
from kvspec.contract import Pair, Readable
from kvspec.errors import Refused
from kvspec.geometry import Array, Config
from kvspec.masks import Causal, Explicit, Logical, Window


class Kind(Protocol):
    """What a growing cache and a ring have in common."""

    profile: str
    rows: Any
    offset: int
    queries: int | None

    def append(self, keys: Array, values: Array) -> None: ...
    def mask(self, logical: Logical) -> Array | None: ...
    def snapshot(self, start: int) -> Snapshot | None: ...
    def restore(self, saved: Snapshot | None, to: int) -> None: ...
    def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None: ...


Base: Any = Protocol
"""Stands behind the kinds below, each of which is laid over Growing and over Ring."""


def both(fault: type) -> dict[str, type]:
    """The fault laid over both kinds."""
    return {base.profile: type(fault.__name__, (fault, base), {"__doc__": fault.__doc__}) for base in (Growing, Ring)}


class Changing:
    """Rows are changed before they are appended."""

    def changed(self, rows: Array, kind: str) -> Array:
        raise NotImplementedError

    def append(self, keys: Array, values: Array) -> None:
        if keys.ndim == values.ndim == 4:
            keys, values = self.changed(keys, "k"), self.changed(values, "v")
        super().append(keys, values)  # type: ignore[misc]


class HeadsReversed(Changing):
    """The rows of the heads are stored in the opposite order of heads."""

    def changed(self, rows: Array, kind: str) -> Array:
        return rows[:, ::-1]


class FirstHeadForAll(Changing):
    """Every head gets the rows of the first."""

    def changed(self, rows: Array, kind: str) -> Array:
        return np.broadcast_to(rows[:, :1], rows.shape)


class FirstSequenceForAll(Changing):
    """Every sequence of the batch gets the rows of the first."""

    def changed(self, rows: Array, kind: str) -> Array:
        return np.broadcast_to(rows[:1], rows.shape)


class ValuesMissing(Changing):
    """An append writes the keys, and zeros for values."""

    def changed(self, rows: Array, kind: str) -> Array:
        return rows if kind == "k" else np.zeros_like(rows)


class LastOfChunkMissing(Changing):
    """Of an append of several rows the last one is left out."""

    def changed(self, rows: Array, kind: str) -> Array:
        return rows[:, :, : max(1, rows.shape[2] - 1)]


class ThroughBf16(Changing):
    """Rows in f32 go through bf16 on their way."""

    def changed(self, rows: Array, kind: str) -> Array:
        if rows.dtype != np.float32:
            return rows
        with np.errstate(invalid="ignore", over="ignore"):
            return rows.astype(ml_dtypes.bfloat16).astype(np.float32)


class KeepsTheArrays(Changing):
    """The first chunk is kept as the caller's own array, not copied."""

    def append(self, keys: Array, values: Array) -> None:
        first = cast(Any, self).offset == 0
        super().append(keys, values)
        if first and keys.ndim == 4 and keys.shape[2] == len(cast(Any, self).rows):
            cast(Any, self).rows.keys, cast(Any, self).rows.values = keys, values

    def changed(self, rows: Array, kind: str) -> Array:
        return rows


class CountsWhatFailed:
    """An append that is refused moves the offset on all the same."""

    def append(self, keys: Array, values: Array) -> None:
        me = cast(Any, self)
        try:
            super().append(keys, values)  # type: ignore[misc]
        except Refused:
            me.offset = min(me.offset + 1, len(me.rows))
            raise


class FreeDoesNothing:
    """Freeing succeeds and leaves every row."""

    def free(self) -> None:
        pass


class Aliased:
    """A snapshot is a view of the live rows."""

    def snapshot(self, start: int) -> Snapshot | None:
        me = cast(Any, self)
        made: Snapshot | None = super().snapshot(start)  # type: ignore[misc]
        if made is not None:
            first = made.start if me.profile == "growing" else 0
            live = slice(first, first + count(made.rows))
            made._rows = Pair(me.rows.keys[:, :, live], me.rows.values[:, :, live])
        return made


class RestoresNothing:
    """A restore succeeds and changes nothing."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        if saved is None:
            super().restore(saved, to)  # type: ignore[misc]
        else:
            deepcopy(self).__class__.__mro__[2].restore(deepcopy(self), saved, to)  # type: ignore[attr-defined]
            cast(Any, self).queries = None


class RestoresToTheEnd:
    """A restore brings back all that was saved, whatever the target is."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        whole = saved is not None and not saved.gone and saved.start <= to <= saved.stop
        super().restore(saved, cast(Snapshot, saved).stop if whole else to)  # type: ignore[misc]


class MergesKeysTwice:
    """Where snapshots are joined, the values are taken from the keys."""

    def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None:
        made: Snapshot | None = super().merge(parent, child)  # type: ignore[misc]
        if made is not None and parent is not None and child is not None:
            keys, values = made.rows
            width = min(keys.shape[3], values.shape[3])
            values[..., :width] = keys[..., :width]
        return made


class Masking:
    """The logical mask is changed before it is made."""

    def meant(self, logical: Logical) -> Logical:
        raise NotImplementedError

    def mask(self, logical: Logical) -> Array | None:
        super().mask(logical)  # type: ignore[misc]
        made: Array | None = super().mask(self.meant(logical))  # type: ignore[misc]
        return made


class UpperLeft(Masking):
    """Causal is aligned at the upper left: the first query sees the first key alone, whatever the past."""

    def meant(self, logical: Logical) -> Logical:
        me = cast(Any, self)
        rows = me.offset if me.profile == "growing" else me.buffered
        if me.queries < 2:
            return logical
        corner = Explicit(np.tril(np.ones((1, 1, me.queries, rows), np.bool_)))
        return tuple(corner if isinstance(p, Causal) else p for p in logical)


class SeesTheFuture(Masking):
    """Causal hides nothing."""

    def meant(self, logical: Logical) -> Logical:
        return tuple(p for p in logical if not isinstance(p, Causal))


class Inverted(Masking):
    """In a boolean array True hides."""

    def meant(self, logical: Logical) -> Logical:
        return tuple(Explicit(~p.array) if isinstance(p, Explicit) and p.array.dtype == bool else p for p in logical)


class MaskOneWide(Masking):
    """A window mask shows one row more."""

    def meant(self, logical: Logical) -> Logical:
        return tuple(Window(p.size + 1) if isinstance(p, Window) else p for p in logical)


class MaskOneNarrow(Masking):
    """A window mask shows one row fewer."""

    def meant(self, logical: Logical) -> Logical:
        return tuple(Window(p.size - 1) if isinstance(p, Window) and p.size > 1 else p for p in logical)


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


class RingRewindsPastIt(Ring):
    """A rewind past the window is accepted, and the rows that were overwritten do not come back."""

    def rewind(self, to: int) -> None:
        if not self.in_round and 0 <= to < self.offset and self.offset > self.window:
            self.index = (self.index - self.offset + to) % max(1, self.buffered)
            self.offset, self.queries = to, None
        else:
            super().rewind(to)


class RingRefusesWhenFull(Ring):
    """A rewind is refused as soon as the window is full, though nothing was overwritten yet."""

    def rewind(self, to: int) -> None:
        if 0 <= to < self.offset == self.window and not self.in_round:
            raise refusals.rewind_window("RING-10", to, self.offset, self.window)
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
    """Freeing leaves the write cursor where it was."""

    def free(self) -> None:
        index = self.index
        super().free()
        self.index = min(index, self.window - 1)


class RingRestoresRowsAlone(Ring):
    """A restore brings the rows back, and takes the write cursor to stand behind the last slot."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        super().restore(saved, to)
        if saved is not None and to == saved.stop:
            self.index = len(self.rows)


class RingRestoresNoOffset(Ring):
    """A restore brings the rows back, and counts the offset from them."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        super().restore(saved, to)
        if saved is not None:
            self.offset = min(self.offset, len(self.rows))
