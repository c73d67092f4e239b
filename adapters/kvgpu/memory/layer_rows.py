"""Rows of layers of unlike views in one device block: where each position lies, by a rule that kernels know too."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.cache_rows import downloaded
from kvgpu.memory.layout import Geometry, Place, replace
from kvgpu.memory.row_groups import MOST_PARTS
from kvgpu.runtime import Work
from kvspec.contract import Pair
from kvspec.geometry import Config


class View(NamedTuple):
    """What a layer with rows shows. Of a chunk `newest` is its size: no query sees more rows than so many."""

    kind: str
    newest: int = 0
    """How many rows a query sees at most, sinks not counted; 0 for all."""
    sinks: int = 0

    @classmethod
    def of(cls, text: str) -> View:
        """Read a view as a config has it, such as `sinks:1:2`."""
        kind, *sizes = text.split(":")
        return cls(kind, *reversed([int(size) for size in sizes]))

    def first(self, p: int) -> int:
        """Give the first position that a query at p sees, sinks not counted."""
        if self.kind == "full":
            return 0
        return p - p % self.newest if self.kind == "chunk" else max(0, p - self.newest + 1)

    @property
    def kept(self) -> int:
        """Count the rows that a next query sees at most beside its own; of a view of all, none are counted."""
        return self.sinks + self.newest - 1 if self.newest else 0


class Room(NamedTuple):
    """How many slots there are: `whole` for a view of all; for others as many as they keep, and `beside` for the
    longest append."""

    whole: int = 0
    beside: int = 0

    def slots(self, view: View) -> int:
        """Count the slots of a head of a layer."""
        return view.kept + self.beside if view.newest else self.whole


class LayerRows:
    """Slots of all layers with rows, those of a layer behind those of the layers before it; heads lie one after the
    other in each.

    Position p lies in slot p if that is below the sinks, else at p - sinks in the ring of the other slots. So an
    append within the room is one launch, whatever the views are, and the host tells it nothing but the offset. More
    room is another block, into which one launch copies what the layers keep.
    """

    def __init__(self, space: Workspace, config: Config, views: Sequence[View]) -> None:
        self.space, self.views, self.room = space, views, Room()
        self.one = config.changed(layers=None, of=None)
        self.together = self.one.changed(batch=len(views))
        self.rows: Rows | None = None
        wholes = accumulate((not view.newest for view in views), initial=0)
        kept = accumulate((view.kept for view in views), initial=0)
        table = [(view.sinks, view.newest, *before) for view, *before in zip(views, wholes, kept, strict=False)]
        self.table = space.runtime.allocate(16 * len(views))
        space.runtime.upload(np.array(table, np.int32), self.table)

    @property
    def nbytes(self) -> int:
        """Count the bytes of the rows that are allocated."""
        return 0 if self.rows is None else self.rows.nbytes

    def release(self) -> None:
        """Give the memory of the rows back."""
        if self.rows is not None:
            self.rows.release()
        self.rows, self.room = None, Room()

    def append(self, source: Place, offset: int) -> None:
        """Write the packed rows `[layers, kv_heads, n, dim]` at the positions from `offset` on."""
        n, step = source.slots, self.one.step
        whole = -(-(offset + n) // step) * step if any(not view.newest for view in self.views) else 0
        room = Room(max(self.room.whole, whole), max(self.room.beside, n))
        if room != self.room or self.rows is None:
            self._make(room, offset)
        assert self.rows is not None
        self._launch(source, self.rows.place, offset, n)

    def _make(self, room: Room, offset: int) -> None:
        """Make slots with this room, and bring there what the layers have for queries at `offset` and beyond."""
        head = Geometry.of(self.one.changed(kv_heads=1))
        slots = self.one.kv_heads * sum(map(room.slots, self.views))
        old, before, self.rows = self.rows, self.room, Rows(self.space.runtime, head, slots)
        self.room = room
        if old is not None:
            self._launch(old.place, self.rows.place, 0, offset, before)
            old.release()

    def _launch(self, source: Place, to: Place, first: int, rows: int, room: Room | None = None) -> None:
        """Copy packed rows of the positions from `first` on; or, with the `room` of the source, what layers have
        there of the positions below `rows`."""
        if rows == 0:
            return
        one, count = Geometry.of(self.one), len(self.views)
        word = one.word
        sizes = one.k_bytes // word, one.v_bytes // word
        work = Work(max(sizes), rows, count, min(2 * one.heads, MOST_PARTS))
        begin, end = ((at.keys_at // word, at.values_at // word) for at in (source, to))
        blocks = source.keys, source.values, to.keys, to.values, self.table
        what = int(room is None), count, one.heads, first, rows, *sizes
        self.space.runtime.launch(f"layer{word}", work, *blocks, *what, *begin, *(room or Room()), *end, *self.room)
        moved = sum(min(rows, view.kept) if room and view.newest else rows for view in self.views)
        self.space.runtime.meter.device_to_device += moved * one.row_bytes

    def read(self, layer: int, first: int, stop: int) -> Pair:
        """Download a layer's sinks below `stop`, and its rows from position `first` to stop - 1, in this order:
        `[1, kv_heads, rows, dim]`. `layer` does not count layers that share rows."""
        assert self.rows is not None
        if self.space.checks:
            self.rows.check_guards()
        sinks, place = self.views[layer].sinks, self._place(layer)
        first = max(first, sinks)
        parts = [downloaded(self.space, self.one, min(sinks, stop), place.span())] if sinks else []
        if first < stop:
            ring = place.slots - sinks
            parts += [
                downloaded(self.space, self.one, stop - first, place.span(sinks, (first - sinks) % ring, ring))
            ]
        return Pair(*(np.concatenate(arrays, axis=2) for arrays in zip(*parts, strict=True)))

    def _place(self, layer: int) -> Place:
        """Give the slots of a layer."""
        assert self.rows is not None
        whole, one = self.rows.place, Geometry.of(self.one)
        lines = one.heads * sum(map(self.room.slots, self.views[:layer]))
        keys_at, values_at = whole.keys_at + lines * one.k_bytes, whole.values_at + lines * one.v_bytes
        return replace(whole, keys_at, values_at)._replace(slots=self.room.slots(self.views[layer]))
