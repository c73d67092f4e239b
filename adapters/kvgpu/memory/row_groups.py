"""Rows of many groups in one device block; each group has its own length on the device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.by_hand import LENGTH
from kvgpu.memory.layout import Geometry, Place, replace
from kvgpu.memory.row_forms import Codec
from kvgpu.runtime import EACH, Block, Started, Work, completed, prepared
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config

BEGINS = 6, 7
"""The integers of the launch that say where packed keys and values begin."""

MOST_PARTS = 65535
"""Groups that CUDA allows along the third axis; striding reaches the heads beyond."""


class Layers:
    """Keys and values `[groups, kv_heads, max_len, dim]`, and a length for each group; all are zeros at first.

    A group is a layer of a store, or one sequence in one layer of a batch. The owner also keeps the lengths on the
    host and checks for room there; `place` reads them from the device, so that captured work stays valid.
    """

    def __init__(self, space: Workspace, config: Config, groups: int) -> None:
        assert config.max_len is not None
        self.space, self.config, self.groups = space, config, groups
        self._geometries: dict[int, Geometry] = {}
        self.geometry = self.geometry_of(groups)
        self._codecs: dict[int, Codec] = {}
        self._row_writers: dict[tuple[int, int], Started] = {}
        self.rows = Rows(space.runtime, self.geometry, config.max_len)
        self.lengths = space.runtime.allocate(groups * LENGTH.itemsize)
        self.set_lengths([0] * groups)
        self.clear()

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Give its allocated blocks."""
        return self.rows.block, self.lengths

    @property
    def nbytes(self) -> int:
        """Count the bytes of its rows, without guards and lengths."""
        return self.rows.nbytes

    def geometry_of(self, groups: int) -> Geometry:
        """Give the geometry of rows for some groups."""
        if groups not in self._geometries:
            self._geometries[groups] = Geometry.of(self.config.changed(batch=groups))
        return self._geometries[groups]

    def staged(self, keys: Array, values: Array, groups: int) -> Place:
        """Bring rows of so many groups to the device, and into their form if they have one."""
        if self.config.form is not None:
            return self.codec(groups).staged(keys, values)
        return self.space.staged(self.geometry_of(groups), keys, values)

    def codec(self, groups: int) -> Codec:
        """Give what makes rows of so many groups into bytes of their form and back. There must be a form."""
        if groups not in self._codecs:  # it has uploaded tables
            self._codecs[groups] = Codec(self.space, self.config.changed(batch=groups))
        return self._codecs[groups]

    def shown(self, first: int, groups: int, n: int) -> Place:
        """Give the first n rows of some groups, one at least, as they are read: those in a form are decoded to
        another place, until the next call."""
        whole = self.begin(first)
        return whole if self.config.form is None else self.codec(groups).decoded(whole, n)

    def release(self) -> None:
        """Release the memory."""
        for block in self.blocks:
            block.release()

    def clear(self) -> None:
        """Make every row zeros."""
        self.rows.clear()

    def bound(self, first: int, count: int, high: int, low: int = 0, add: int = 0) -> None:
        """Add to the lengths of some groups, and keep them in low..high; one launch."""
        self.space.runtime.launch("bound", Work(1, count), self.lengths, first, count, add, low, high)

    def place(self, source: Place, first: int, groups: int) -> None:
        """Write the rows `[groups, kv_heads, n, dim]` behind the lengths of the groups from `first` on, and advance
        these by n: in one launch if n is 1, in two otherwise."""
        if source.slots != 1:
            self.put(source, first, groups)
            self.bound(first, groups, high=self.rows.slots, add=source.slots)
        elif not self.rows.by_hand.put_behind(self.lengths, first, groups, source, self.config.kv_heads):
            self.put(source, first, groups, advance=True)

    def put(self, source: Place, first: int, groups: int, advance: bool = False) -> None:
        """Write rows as `place` does. Lengths move only with `advance`, which takes a single row. This is done for
        every token, so its launch is prepared. One launch."""
        n, word, held = source.slots, self.geometry.word, self.rows.block
        blocks = source.keys, source.values, held, held, self.lengths
        args = *blocks, source.keys_at // word, source.values_at // word
        if advance:
            self._row_writer(first, groups)(*args)
        else:
            kernel, work, numbers = self._launch(first, groups, n, advance)
            self.space.runtime.launch(kernel, work, *completed(numbers, BEGINS, args))
        self.space.runtime.meter.device_to_device += groups * n * self.config.row_bytes

    def _row_writer(self, first: int, groups: int) -> Started:
        """Give the launch that writes one row of each group."""
        if (first, groups) not in self._row_writers:
            what = self._launch(first, groups, 1, advance=True)
            self._row_writers[first, groups] = prepared(self.space.runtime, *what, BEGINS)
        return self._row_writers[first, groups]

    def _launch(self, first: int, groups: int, n: int, advance: bool) -> tuple[str, Work, tuple[int, ...]]:
        """Give the kernel that writes n rows of each group, its work, and its integers."""
        heads, to, word, widths = self.config.kv_heads, self.begin(first), self.geometry.word, self.geometry.widths
        work = Work(max(widths), n, groups, 1 if advance else min(2 * heads, MOST_PARTS))
        where = EACH, EACH, to.keys_at // word, to.values_at // word, to.slots
        return f"place{word}", work, (first, groups, heads, n, *widths, *where, int(advance))

    def begin(self, group: int) -> Place:
        """Give the places of a group and all behind it."""
        whole, lines = self.rows.place, group * self.config.kv_heads * self.rows.slots
        keys_at = whole.keys_at + lines * self.geometry.k_bytes
        return replace(whole, keys_at=keys_at, values_at=whole.values_at + lines * self.geometry.v_bytes)

    def set_lengths(self, lengths: Sequence[int]) -> None:
        """Upload all lengths."""
        self.space.runtime.upload(np.array(lengths, np.int64), self.lengths)

    def read(self, first: int, groups: int, n: int) -> Pair:
        """Download as `fetched` does, and check the guard bands if asked for."""
        if self.space.checks:
            self.rows.check_guards()
        return self.fetched(first, groups, n)

    def fetched(self, first: int, groups: int, n: int) -> Pair:
        """Download the first n rows of some groups, `[groups, kv_heads, n, dim]`, and nothing else."""
        place = self.shown(first, groups, n) if n else self.begin(first)
        return Pair(self._lines("k", place, groups, n), self._lines("v", place, groups, n))

    def _lines(self, kind: str, place: Place, groups: int, n: int) -> Array:
        """Give one line of bytes for each head."""
        dtype, shape = DTYPES[self.config.dtype], self.config.changed(batch=groups).shape(kind, n)
        if n == 0:
            return np.empty(shape, dtype)
        block, at = (place.keys, place.keys_at) if kind == "k" else (place.values, place.values_at)
        size = shape[3] * dtype.itemsize
        lines = self.space.runtime.download(block, at, n * size, shape[0] * shape[1], place.slots * size)
        rows: Array = lines.view(dtype).reshape(shape)
        return rows

    def first_key(self, slot: int) -> Array:
        """Download the key row in a slot of group 0, head 0, `[k_dim]`."""
        place, dtype = self.begin(0), DTYPES[self.config.dtype]
        place = replace(place, place.keys_at + slot * self.geometry.k_bytes, place.values_at)
        if self.config.form is not None:
            place = Codec(self.space, self.config.changed(kv_heads=1)).decoded(place, 1)
        found = self.space.runtime.download(place.keys, place.keys_at, self.config.k_dim * dtype.itemsize)
        row: Array = found.view(dtype)[0]
        return row
