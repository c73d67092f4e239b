"""Rows of layers of unlike views in one device block: where each position lies, by a rule that kernels know too."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.cache_rows import downloaded
from kvgpu.memory.layout import Geometry, Place, replace
from kvgpu.memory.row_forms import Codec
from kvgpu.memory.row_groups import MOST_PARTS
from kvgpu.runtime import Block, Work
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config


class View(NamedTuple):
    """What a layer that is given rows shows. A chunk has its size as `newest`. A state has 1: it needs no row from
    before."""

    kind: str
    newest: int = 0
    """How many rows a query sees at most, sinks not counted; 0 for all."""
    sinks: int = 0

    @classmethod
    def of(cls, text: str) -> View:
        """Read a view as a config has it, such as `sinks:1:2`."""
        kind, *sizes = text.split(":")
        if kind == "state":
            return cls(kind, 1)
        return cls(kind, *reversed([int(size) for size in sizes]))

    def first(self, p: int) -> int:
        """Give the first position that a query at p sees, sinks not counted."""
        if self.kind == "full":
            return 0
        return p - p % self.newest if self.kind == "chunk" else max(0, p - self.newest + 1)

    def needed(self, n: int) -> list[int]:
        """Give the positions of the rows below n that queries at n or later see."""
        return [*range(min(self.sinks, n)), *range(max(self.sinks, self.first(n)), n)]

    def needs(self, n: int) -> int:
        """Count the rows below n that queries at n or later see, which is what a layer has at the offset n."""
        if self.kind == "chunk":
            return n % self.newest
        return min(n, self.kept) if self.newest else n

    @property
    def kept(self) -> int:
        """Count the rows that a next query sees at most beside its own; of a view of all, none are counted."""
        return self.sinks + self.newest - 1 if self.newest else 0


class Room(NamedTuple):
    """How many slots there are: `whole` for a view of all rows. Other views have as many as they keep, and
    `beside` more for the longest append."""

    whole: int = 0
    beside: int = 0

    def slots(self, view: View) -> int:
        """Count the slots of a head of a layer."""
        return view.kept + self.beside if view.newest else self.whole


SLOTS_ANEW, ROWS_IN, ROWS_OUT, ROWS_BACK = range(4)
"""From where to where the kernel copies rows: see `layer.inc`."""


class LayerRows:
    """Slots of all layers with rows, those of a layer behind those of the layers before it; heads lie one after the
    other in each.

    Position p lies in slot p if that is below the sinks, else at p - sinks in the ring of the other slots. So an
    append within the room is one launch, whatever the views are, and the host tells it nothing but the offset. More
    room is another block, into which one launch copies what the layers need. So does one into a snapshot, and back.
    """

    def __init__(self, space: Workspace, config: Config, views: Sequence[View]) -> None:
        self.space, self.views, self.room = space, views, Room()
        self.one = config.changed(layers=None, of=None)
        self.together = self.one.changed(batch=len(views))
        self.head = Geometry.of(self.one.changed(kv_heads=1))
        self.codec, self.codecs = Codec(space, self.one), Codec(space, self.together)
        self.rows: Rows | None = None
        wholes = accumulate((not view.newest for view in views), initial=0)
        kept = accumulate((view.kept for view in views), initial=0)
        each = zip(views, wholes, kept, strict=False)
        table = [(view.sinks, view.newest, *before, view.kind == "chunk") for view, *before in each]
        self.table = space.runtime.allocate(20 * len(views))
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
        n = source.slots
        there = self._with_room(offset + n, n, offset)
        self._launch(ROWS_IN, source, there.place, offset, n)

    def save(self, offset: int) -> Rows:
        """Copy what the layers need at `offset`, layer by layer: the rows of a snapshot."""
        assert self.rows is not None
        saved = self._allocated(sum(view.needs(offset) for view in self.views))
        self._launch(ROWS_OUT, self.rows.place, saved.place, 0, offset)
        return saved

    def put_back(self, saved: Place, offset: int) -> None:
        """Copy into the slots what the layers needed at `offset`; what was there is gone."""
        there = self._with_room(offset, 1, 0)
        self._launch(ROWS_BACK, saved, there.place, 0, offset)

    @property
    def none(self) -> Pair:
        """No bytes of rows."""
        sizes = self.head.k_bytes, self.head.v_bytes
        return Pair(*(np.empty((1, self.one.kv_heads, 0, size), np.uint8) for size in sizes))

    def packed(self, offset: int) -> list[Pair]:
        """Download what each layer needs at `offset`, as it is kept: `[1, kv_heads, rows, width]`, bytes of a
        form."""
        counts, heads = [view.needs(offset) for view in self.views], self.one.kv_heads
        ends = list(accumulate((heads * n for n in counts), initial=0))
        place = self.space.outgoing(self.head, ends[-1])
        if self.rows is not None and ends[-1]:
            if self.space.checks:
                self.rows.check_guards()
            self._launch(ROWS_OUT, self.rows.place, place, 0, offset)
        blocks = (place.keys, place.keys_at, self.head.k_bytes), (place.values, place.values_at, self.head.v_bytes)
        lines = [self._lines(*block, ends[-1]) for block in blocks]
        cuts = zip(ends, ends[1:], counts, strict=False)
        return [Pair(*(a[low:high].reshape(1, heads, n, a.shape[1]) for a in lines)) for low, high, n in cuts]

    def _lines(self, block: Block, at: int, size: int, count: int) -> Array:
        """Download so many rows of a head, which lie one behind the other."""
        dtype = DTYPES[self.one.dtype] if self.one.form is None else np.dtype(np.uint8)
        found = self.space.runtime.download(block, at, count * size) if count else np.empty(0, np.uint8)
        return found.view(dtype).reshape(count, size // dtype.itemsize)

    def receive(self, each: Sequence[Pair], offset: int) -> None:
        """Upload into the slots the bytes of what the layers need at `offset`; what was there is gone."""
        sizes = self.head.k_bytes, self.head.v_bytes
        parts = zip(*each, strict=True)
        lines = [np.concatenate([a.reshape(-1, size) for a in of]) for of, size in zip(parts, sizes, strict=True)]
        if len(lines[0]):
            self.put_back(self.space.staged(self.head, *lines), offset)
        elif offset:
            self._with_room(offset, 1, 0)

    def _with_room(self, end: int, beside: int, offset: int) -> Rows:
        """Give slots for the positions below `end`, with what the layers need at `offset`."""
        step = self.one.step
        whole = -(-end // step) * step if any(not view.newest for view in self.views) else 0
        room = Room(max(self.room.whole, whole), max(self.room.beside, beside))
        if room == self.room and self.rows is not None:
            return self.rows
        made, old, before = self._allocated(sum(map(room.slots, self.views))), self.rows, self.room
        self.rows, self.room = made, room
        if old is not None:
            self._launch(SLOTS_ANEW, old.place, made.place, 0, offset, before)
            old.release()
        return made

    def _allocated(self, slots: int) -> Rows:
        """Allocate so many slots of every head."""
        return Rows(self.space.runtime, self.head, self.one.kv_heads * slots)

    def _launch(
        self, way: int, source: Place, to: Place, first: int, rows: int, before: Room | None = None
    ) -> None:
        """Copy packed rows of the positions from `first` on, or what the layers need at the offset `rows`. Slots
        have the room that there is now; those that are left had another one."""
        if rows == 0:
            return
        one, count = Geometry.of(self.one), len(self.views)
        word = one.word
        sizes = one.k_bytes // word, one.v_bytes // word
        work = Work(max(sizes), rows, count, min(2 * one.heads, MOST_PARTS))
        begin, end = ((at.keys_at // word, at.values_at // word) for at in (source, to))
        blocks = source.keys, source.values, to.keys, to.values, self.table
        what = way, count, one.heads, first, rows, *sizes
        ends = *begin, *(before or self.room), *end, *self.room
        self.space.runtime.launch(f"layer{word}", work, *blocks, *what, *ends)
        moved = sum(rows if way == ROWS_IN else view.needs(rows) for view in self.views)
        self.space.runtime.meter.device_to_device += moved * one.row_bytes

    def read(self, layer: int, first: int, stop: int) -> Pair:
        """Download a layer's sinks below `stop`, and its rows from position `first` to stop - 1, in this order:
        `[1, kv_heads, rows, dim]`. `layer` does not count layers that share rows."""
        assert self.rows is not None
        if self.space.checks:
            self.rows.check_guards()
        sinks, place = self.views[layer].sinks, self._place(layer)
        first = max(first, sinks)
        parts = [downloaded(self.codec, min(sinks, stop), place.span())] if sinks else []
        if first < stop:
            ring = place.slots - sinks
            parts += [downloaded(self.codec, stop - first, place.span(sinks, (first - sinks) % ring, ring))]
        return Pair(*(np.concatenate(arrays, axis=2) for arrays in zip(*parts, strict=True)))

    def _place(self, layer: int) -> Place:
        """Give the slots of a layer."""
        assert self.rows is not None
        whole, one = self.rows.place, Geometry.of(self.one)
        lines = one.heads * sum(map(self.room.slots, self.views[:layer]))
        keys_at, values_at = whole.keys_at + lines * one.k_bytes, whole.values_at + lines * one.v_bytes
        return replace(whole, keys_at, values_at)._replace(slots=self.room.slots(self.views[layer]))
