"""Common bugs: operations that do not do what they say."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from kvconform.bugs.planting import Over, planted
from kvref.abilities.snapshot import Snapshot
from kvref.caches.ragged import Ragged
from kvref.caches.store import Store
from kvref.memory.rows import count
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import Array


@planted("silent-no-op", breaks="SNAP-6 SNAP-12")
class RestoresNothing(Over):
    """A restore succeeds and changes nothing."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        if saved is None:
            super().restore(saved, to)
        else:
            super(RestoresNothing, deepcopy(self)).restore(saved, to)
            self.queries = None


@planted("changed-though-refused", breaks="CACHE-2")
class CountsWhatFailed(Over):
    """A refused append moves the offset."""

    def append(self, keys: Array, values: Array) -> None:
        try:
            super().append(keys, values)
        except Refused:
            self.offset = min(self.offset + 1, len(self.rows))
            raise


@planted("changed-though-refused", breaks="STORE-8")
class StoreHalfDone(Store):
    """An append to all layers goes layer by layer: if one is full, those before it already have their rows."""

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        if layer is None and keys.ndim == values.ndim == 4 and len(keys) == len(values) == len(self.lengths_):
            for each in range(len(self.lengths_)):
                super().append(keys[each : each + 1], values[each : each + 1], each)
        else:
            super().append(keys, values, layer)


@planted("changed-though-refused", breaks="RAGGED-15")
class TrimsOneByOne(Ragged):
    """A trim stops at the first sequence that it cannot trim, and leaves those before it trimmed."""

    def trim(self, counts: Sequence[int]) -> None:
        each = counts if len(counts) == len(self.lengths) else ()
        for s, n in enumerate(each):
            super().trim([n if i == s else 0 for i in range(len(each))])
        super().trim([0] * len(counts))


@planted("aliased-snapshot", breaks="SNAP-3")
class Aliased(Over):
    """A snapshot is a view of the live rows."""

    def snapshot(self, start: int) -> Snapshot | None:
        made = super().snapshot(start)
        if made is not None:
            first = made.start if self.kind == "growing" else 0
            live = slice(first, first + count(made.rows))
            made._rows = Pair(self.rows.keys[:, :, live], self.rows.values[:, :, live])
        return made


@planted("aliased-array", breaks="CACHE-4")
class KeepsTheArrays(Over):
    """The first chunk is kept as the caller's own array, not copied."""

    def append(self, keys: Array, values: Array) -> None:
        first = self.offset == 0
        super().append(keys, values)
        if first and keys.ndim == 4 and keys.shape[2] == len(self.rows):
            self.rows.keys, self.rows.values = keys, values
