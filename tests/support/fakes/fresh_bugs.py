"""Bugs that are none of the mutants': each is a cache of the reference with one method wrong, and says which
clauses a careful reader would name. Blame is measured on them; see `tools.blame`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kvconform.bugs.planting import having
from kvref.abilities import masks
from kvref.abilities.snapshot import Snapshot
from kvref.caches.bounded import Bounded
from kvref.caches.growing import Growing
from kvref.caches.page import Pages
from kvref.caches.ring import Ring
from kvref.caches.sink import Sink
from kvref.caches.store import Store
from kvref.memory.page_pool import Pool
from kvref.memory.rows import count
from kvspec.contract import Pair, Readable
from kvspec.geometry import Array, Config
from kvspec.masks import Causal, Explicit, Logical, Window


class FreshBug(NamedTuple):
    """A wrong cache: its name, the clauses that a reader would name, what it claims, and what makes its adapter."""

    id: str
    clauses: tuple[str, ...]
    claims: tuple[str, ...]
    adapter: Callable[[], Any]


BUGS: list[FreshBug] = []


def breaks(*clauses: str, beside: str = "mask") -> Callable[[type], type]:
    """The decorated cache breaks one of these clauses, whichever a reader names; it is claimed with the chapters
    `beside` its kind."""

    def plant(bug: Any) -> type:
        claims = (bug.kind, *beside.split())
        BUGS.append(FreshBug(bug.__name__, clauses, claims, having(**{bug.kind: bug})))
        made: type = bug
        return made

    return plant


def _swapped(pair: Pair) -> Pair:
    return Pair(*(np.ascontiguousarray(a[:, ::-1]) for a in pair))


@breaks("GROW-2", "GROW-14")
class HeadsSwappedInChunks(Growing):
    """Several rows at once are written with their heads in reverse."""

    def _feed(self, new: Pair) -> None:
        super()._feed(_swapped(new) if count(new) > 1 else new)


@breaks("GROW-5", "CACHE-8")
class RewindOneShort(Growing):
    """A rewind of more than one row takes one row too few."""

    def rewind(self, to: int) -> None:
        super().rewind(to + 1 if 0 <= to < self.offset - 1 else to)


@breaks("MASK-2")
class CausalOneLate(Growing):
    """Causal lets each query but the last see one row of its future."""

    def mask(self, logical: Logical) -> Array | None:
        made = super().mask(logical)
        if made is None or made.dtype != bool or not any(isinstance(p, Causal) for p in logical):
            return made
        late = np.roll(made, 1, axis=3)
        late[..., 0] = True
        return made | late


@breaks("GROW-2", "CACHE-5", "GROW-14")
class RowLostAtGrowth(Growing):
    """When storage grows for the second time, the newest old row is not copied."""

    def _feed(self, new: Pair) -> None:
        old, size = self.offset, len(self.rows)
        super()._feed(new)
        if old and size < len(self.rows) and old >= 2:
            self.rows.keys[:, :, old - 1] = 0
            self.rows.values[:, :, old - 1] = 0


@breaks("SNAP-3", beside="mask snapshot")
class SnapshotShares(Growing):
    """A snapshot is a view of the cache's own memory."""

    def snapshot(self, start: int) -> Snapshot | None:
        made = super().snapshot(start)
        if made is not None:
            first, last = made.start, made.stop
            made._rows = Pair(self.rows.keys[:, :, first:last], self.rows.values[:, :, first:last])
        return made


@breaks("CACHE-6")
class FreeKeepsOffset(Growing):
    """After a free the offset stands where it stood."""

    def free(self) -> None:
        offset = self.offset
        super().free()
        self.rows.grow(offset, 0)
        self.offset = offset


@breaks("CACHE-1")
class ZeroRowsEndTheHistory(Growing):
    """An append of no rows drops the newest row."""

    def append(self, keys: Array, values: Array) -> None:
        super().append(keys, values)
        if keys.shape[2] == 0 and self.offset:
            self.offset -= 1


@breaks("CACHE-2")
class RefusedButChanged(Growing):
    """A refused append has already cut the newest row."""

    def demand_rows(self, new: Pair) -> None:
        try:
            super().demand_rows(new)
        except Exception:
            self.offset = max(0, self.offset - 1)
            raise


@breaks("CACHE-7")
class RewindBelowZeroTaken(Growing):
    """A rewind below 0 goes to 0."""

    def rewind(self, to: int) -> None:
        super().rewind(max(0, to))


@breaks("GROW-4")
class ViewWithoutNewest(Growing):
    """The view of three rows or more lacks the newest."""

    def read(self, what: Readable) -> Pair | None:
        found = super().read(what)
        return Pair(*(a[:, :, :-1] for a in found)) if found and what == "view" and count(found) > 2 else found


@breaks("RING-1", "RING-19", "RING-22")
class WrapsOneEarly(Ring):
    """From the second lap on a single row goes one slot too far."""

    laps = 0

    def _decode(self, new: Pair) -> None:
        if self.index == self.window and self.window > 1:
            self.laps += 1
            if self.laps > 1:
                self.index = 0
                self.rows.write(1, new)
                self.index = 1
                return
        super()._decode(new)


@breaks("RING-3", "RING-25")
class ChunkForgetsOne(Ring):
    """Several rows at once keep one old row too few."""

    def _prefill(self, new: Pair) -> None:
        self._straighten()
        self.rows.join(new, max(0, len(self.rows) - max(0, self.window - 2)))
        self.index = len(self.rows)


@breaks("RING-3", "RING-24")
class NotStraightened(Ring):
    """Several rows at once go behind slots that are still in the order of the ring."""

    def _straighten(self) -> None:
        if self.offset <= self.window:
            super()._straighten()


@breaks("RING-5")
class ViewInSlotOrder(Ring):
    """The view is in slot order."""

    def _newest(self) -> list[int]:
        return sorted(super()._newest())


@breaks("CACHE-8", "RING-27", "RING-7")
class RewindKeepsIndex(Ring):
    """A rewind by exactly one row leaves the index."""

    def rewind(self, to: int) -> None:
        index, one = self.index, to == self.offset - 1
        super().rewind(to)
        if one:
            self.index = index


@breaks("RING-10")
class RewindPastTheWindow(Ring):
    """A rewind by one row is always taken."""

    def rewind(self, to: int) -> None:
        if to == self.offset - 1 and self.offset > self.window:
            self.offset, self.index, self.queries = to, (self.index - 1) % self.buffered, None
        else:
            super().rewind(to)


@breaks("CACHE-9")
class SaysAlwaysYes(Ring):
    """It says that it could go back by one row, whatever was overwritten."""

    def can_rewind(self, to: int) -> bool:
        return super().can_rewind(to) or 0 <= to == self.offset - 1


@breaks("MASK-8")
class WindowMaskOneWide(Ring):
    """With several queries the mask lets one row too many through."""

    def mask(self, logical: Logical) -> Array | None:
        if self.queries is None or self.queries < 2:
            return super().mask(logical)
        wide = (*logical, Window(self.window + 1))
        return masks.in_position_order(wide, self.config.batch, self.queries, self.buffered)


@breaks("MASK-10")
class ArrayNotGathered(Ring):
    """With one query an array stays in position order."""

    def mask(self, logical: Logical) -> Array | None:
        if self.queries == 1 and any(isinstance(p, Explicit) for p in logical):
            return masks.in_position_order(logical, self.config.batch, 1, self.buffered)
        return super().mask(logical)


@breaks("SNAP-12", "SNAP-15", beside="mask snapshot")
class RestoresAtZero(Ring):
    """A restored ring begins to overwrite at slot 0, wherever it stood."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        super().restore(saved, to)
        if saved is not None and len(self.rows) == self.window and self.offset > self.window:
            self.index = self.window


@breaks("BOUNDED-2")
class TakesWhatFits(Bounded):
    """Of more rows than there is room for it takes those that fit, and refuses."""

    def _demand(self, new: Pair) -> None:
        room = self.max_len - self.offset
        try:
            super()._demand(new)
        except Exception:
            if 0 < room < count(new) and new.keys.shape[1] == self.config.kv_heads:
                self.append(*(a[:, :, :room] for a in new))
            raise


@breaks("BOUNDED-3", "BOUNDED-5", "BOUNDED-1")
class LastRowRefused(Bounded):
    """The last slot is never filled."""

    def _demand(self, new: Pair) -> None:
        self.max_len -= 1
        try:
            super()._demand(new)
        finally:
            self.max_len += 1


@breaks("SINK-1", "SINK-26")
class OverwritesASink(Sink):
    """After the first wrap a single row goes to the last sink's slot."""

    def _decode(self, new: Pair) -> None:
        wraps = self.index == self.most and self.live <= self.most
        super()._decode(new)
        if wraps and self.sinks:
            self.rows.write(self.sinks - 1, new)


@breaks("STORE-14")
class RollbackOfTheFirst(Store):
    """A rollback cuts the first layer only."""

    def rollback(self, to: int) -> None:
        rest = self.lengths_[1:]
        super().rollback(to)
        self.lengths_[1:] = rest


@breaks("STORE-3", "STORE-4", "STORE-5")
class LastLayerOneOff(Store):
    """Rows of the last layer go one slot too far, if they find room."""

    def _write(self, layer: int, at: int, rows: Pair) -> None:
        last = layer == len(self.lengths_) - 1 > 0 and at + rows.keys.shape[1] < self.max_len
        super()._write(layer, at + last, rows)


@breaks("GROW-2", "GROW-14")
class ChecksNothingAndLosesARow(Growing):
    """It takes every rewind, and loudly so; silently the fifth row takes the place of the fourth."""

    def rewind(self, to: int) -> None:
        super().rewind(min(max(0, to), self.offset))

    def _feed(self, new: Pair) -> None:
        super()._feed(new)
        if self.offset >= 5:
            self.rows.keys[:, :, 3] = self.rows.keys[:, :, 4]
            self.rows.values[:, :, 3] = self.rows.values[:, :, 4]


@breaks("GROW-5", "CACHE-8", "GROW-2")
class DeadRowSeen(Growing):
    """After a rewind by two rows or more the next history has one dead row in its middle."""

    dead: Pair | None = None

    def rewind(self, to: int) -> None:
        by = self.offset - to
        dead = self.rows.copy(to, to + 1) if by > 1 and to >= 0 else None
        super().rewind(to)
        self.dead = dead

    def _feed(self, new: Pair) -> None:
        super()._feed(new)
        if self.dead is not None and self.offset > 1:
            self.rows.write(0, self.dead)
        self.dead = None


class _Copies(Pool):
    def copied(self, page: int, rows: int) -> int:
        return super().copied(page, rows - 1)


@breaks("PAGE-20", "PAGE-19", beside="")
class CopiesOneFewer(Pages):
    """A copy of a shared page lacks the last row."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.pool = _Copies(config)


@breaks("PAGE-27", "PAGE-23", "PAGE-22", beside="")
class TruncateGivesTooMuch(Pages):
    """A truncate to the end of a page gives that page back too."""

    def truncate(self, sequence: int, to: int) -> None:
        super().truncate(sequence, to)
        cut = self.in_use[sequence]
        if to and to % self.pool.size == 0 and len(cut.table) > 1:
            self.pool.counts[cut.table[-1]] -= 1
