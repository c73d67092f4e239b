"""Common bugs that growing caches and rings can both have, planted though nobody reported them here."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from kvref.growing import Growing
from kvref.ring import Ring
from kvref.rows import count
from kvref.snapshot import Snapshot
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import Array
from kvspec.masks import Causal, Explicit, Logical, Window

if TYPE_CHECKING:
    Over = Growing
else:
    Over = object
"""What a fault is laid over: either kind."""


def both(fault: type) -> dict[str, type]:
    """The fault laid over both kinds."""
    return {
        cache.kind: type(fault.__name__, (fault, cache), {"__doc__": fault.__doc__}) for cache in (Growing, Ring)
    }


class Changing(Over):
    """Rows are changed before they are appended."""

    def changed(self, rows: Array, kind: str) -> Array:
        raise NotImplementedError

    def append(self, keys: Array, values: Array) -> None:
        if keys.ndim == values.ndim == 4:
            keys, values = self.changed(keys, "k"), self.changed(values, "v")
        super().append(keys, values)


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


class RowsTwice(Changing):
    """A single row is stored twice."""

    def changed(self, rows: Array, kind: str) -> Array:
        return np.repeat(rows, 2, axis=2) if rows.shape[2] == 1 else rows


class ThroughBf16(Changing):
    """Rows in f32 go through bf16 on their way."""

    def changed(self, rows: Array, kind: str) -> Array:
        if rows.dtype != np.float32:
            return rows
        with np.errstate(invalid="ignore", over="ignore"):
            return rows.astype(ml_dtypes.bfloat16).astype(np.float32)


class KeepsTheArrays(Over):
    """The first chunk is kept as the caller's own array, not copied."""

    def append(self, keys: Array, values: Array) -> None:
        first = self.offset == 0
        super().append(keys, values)
        if first and keys.ndim == 4 and keys.shape[2] == len(self.rows):
            self.rows.keys, self.rows.values = keys, values


class CountsWhatFailed(Over):
    """An append that is refused moves the offset on all the same."""

    def append(self, keys: Array, values: Array) -> None:
        try:
            super().append(keys, values)
        except Refused:
            self.offset = min(self.offset + 1, len(self.rows))
            raise


class FreeDoesNothing(Over):
    """Freeing succeeds and leaves every row."""

    def free(self) -> None:
        pass


class Aliased(Over):
    """A snapshot is a view of the live rows."""

    def snapshot(self, start: int) -> Snapshot | None:
        made = super().snapshot(start)
        if made is not None:
            first = made.start if self.kind == "growing" else 0
            live = slice(first, first + count(made.rows))
            made._rows = Pair(self.rows.keys[:, :, live], self.rows.values[:, :, live])
        return made


class RestoresNothing(Over):
    """A restore succeeds and changes nothing."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        if saved is None:
            super().restore(saved, to)
        else:
            super(RestoresNothing, deepcopy(self)).restore(saved, to)
            self.queries = None


class RestoresToTheEnd(Over):
    """A restore brings back all that was saved, whatever the target is."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        if saved is not None and not saved.gone and saved.start <= to <= saved.stop:
            to = saved.stop
        super().restore(saved, to)


class MergesKeysTwice(Over):
    """Where snapshots are joined, the values are taken from the keys."""

    def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None:
        made = super().merge(parent, child)
        if made is not None and parent is not None and child is not None:
            keys, values = made.rows
            width = min(keys.shape[3], values.shape[3])
            values[..., :width] = keys[..., :width]
        return made


class Masking(Over):
    """The logical mask is changed before it is made."""

    def meant(self, logical: Logical) -> Logical:
        raise NotImplementedError

    def mask(self, logical: Logical) -> Array | None:
        super().mask(logical)
        return super().mask(self.meant(logical))


class UpperLeft(Masking):
    """Causal is aligned at the upper left: the first query sees the first key alone, whatever the past."""

    def meant(self, logical: Logical) -> Logical:
        if self.queries is None or self.queries < 2:
            return logical
        corner = Explicit(np.tril(np.ones((1, 1, self.queries, self.lengths().buffered or 0), np.bool_)))
        return tuple(corner if isinstance(p, Causal) else p for p in logical)


class SeesTheFuture(Masking):
    """Causal hides nothing."""

    def meant(self, logical: Logical) -> Logical:
        return tuple(p for p in logical if not isinstance(p, Causal))


class Inverted(Masking):
    """In a boolean array True hides."""

    def meant(self, logical: Logical) -> Logical:
        return tuple(
            Explicit(~p.array) if isinstance(p, Explicit) and p.array.dtype == bool else p for p in logical
        )


class MaskOneWide(Masking):
    """A window mask shows one row more."""

    def meant(self, logical: Logical) -> Logical:
        return tuple(Window(p.size + 1) if isinstance(p, Window) else p for p in logical)


class MaskOneNarrow(Masking):
    """A window mask shows one row fewer."""

    def meant(self, logical: Logical) -> Logical:
        return tuple(Window(p.size - 1) if isinstance(p, Window) and p.size > 1 else p for p in logical)
