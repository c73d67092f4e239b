"""Parcels of rows on a device: downloaded as they are kept, head after head; uploaded from any layout."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from kvgpu.memory.buffers import Workspace
from kvgpu.memory.cache_rows import Slots
from kvgpu.memory.layout import Geometry, Place, Span, move
from kvgpu.runtime import Block
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config, forms
from kvspec.parcels import Parcel, fits, packed
from kvspec.refusals import parcels as refusals

Run = tuple[int, Span]
"""How many rows lie where."""


def gathered(space: Workspace, geometry: Geometry, runs: Sequence[Run]) -> Place:
    """Rows as they are kept, one run behind the other, packed; until the next call."""
    place, filled = space.outgoing(geometry, sum(n for n, _ in runs)), 0
    for n, source in runs:
        move(space.runtime, geometry, n, source, place.span(filled))
        filled += n
    return place


def sent(space: Workspace, config: Config, offset: int, positions: Sequence[int], place: Place) -> Parcel:
    """Download packed rows of these positions, with their descriptor."""
    rows = Pair(*(_fetched(space, config, kind, place) for kind in "kv"))
    return packed(config, offset, positions, rows)


def _fetched(space: Workspace, config: Config, kind: str, place: Place) -> Array:
    """The rows of a packed place, `[batch, kv_heads, n, dim]`; of a form their bytes."""
    geometry, kept = Geometry.of(config), forms(config)
    block, at = (place.keys, place.keys_at) if kind == "k" else (place.values, place.values_at)
    size = geometry.k_bytes if kind == "k" else geometry.v_bytes
    dtype = DTYPES[config.dtype] if kept is None else np.dtype(np.uint8)
    shape = config.batch, config.kv_heads, place.slots, size // dtype.itemsize
    return _bytes(space, block, at, geometry.heads * place.slots * size).view(dtype).reshape(shape)


def _bytes(space: Workspace, block: Block, at: int, size: int) -> Array:
    return space.runtime.download(block, at, size) if size else np.empty(0, np.uint8)


def demand(parcel: Parcel, config: Config, needs: Sequence[int]) -> Pair:
    """The bytes of the rows of these positions, `[batch, kv_heads, n, row bytes]`. Refused where the parcel is
    damaged, does not fit, or lacks one."""
    if (why := parcel.damage()) is not None:
        raise refusals.damaged("MOVE-9", why)
    if not fits(config, parcel.descriptor):
        raise refusals.geometry("MOVE-8", dict(parcel.descriptor))
    place = {position: i for i, position in enumerate(parcel.positions)}
    if missing := [position for position in needs if position not in place]:
        raise refusals.missing("MOVE-7", missing[0], parcel.offset)
    chosen = [place[position] for position in needs]
    return Pair(*(np.ascontiguousarray(rows[:, :, chosen]).view(np.uint8) for rows in parcel.rows()))


def received(space: Workspace, config: Config, rows: Pair) -> Place | None:
    """Upload the bytes of rows as they are kept; None where there are none."""
    return space.staged(Geometry.of(config), *rows) if rows.keys.shape[2] else None


class Packing(ABC):
    """A cache of one sequence, whose rows leave in parcels and come in them."""

    config: Config
    space: Workspace
    store: Slots
    offset: int

    @abstractmethod
    def needed(self, offset: int) -> Sequence[int]:
        """The positions that queries at an offset or later see below it."""

    @abstractmethod
    def runs(self) -> list[Run]:
        """Where the rows of `needed` lie, in order."""

    @abstractmethod
    def take_over(self, rows: Place | None, offset: int) -> None:
        """Hold these rows, those of `needed`, and no others."""

    def has_room(self, offset: int) -> bool:
        """Whether there is room for an offset."""
        return True

    def pack(self) -> Parcel:
        """The rows that a next query sees beside its own, as they are kept."""
        place = gathered(self.space, self.store.geometry, self.runs())
        return sent(self.space, self.config, self.offset, self.needed(self.offset), place)

    def unpack(self, parcel: Parcel) -> None:
        """Become a cache at the parcel's offset."""
        rows = demand(parcel, self.config, self.needed(parcel.offset))
        if not self.has_room(parcel.offset):
            raise refusals.no_room("MOVE-10", parcel.offset, self.config.max_len)
        self.take_over(received(self.space, self.config, rows), parcel.offset)
