"""Parcels of rows on a device: downloaded as they are kept, head after head; uploaded from any layout."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from kvgpu.memory.buffers import Workspace
from kvgpu.memory.cache_rows import Slots
from kvgpu.memory.layout import Geometry, Place, Span, move
from kvgpu.runtime import Block
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config, forms, heads_of
from kvspec.parcels import ALONE, Parcel, Sort, fits, packed
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


def demand(parts: Sequence[Parcel], config: Config, needs: Sequence[int]) -> Pair:
    """The bytes of the rows of these positions, `[batch, kv_heads, n, row bytes]`, each head from the first part
    that has it. Refused where a part is damaged or does not fit, and where they lack a row."""
    for part in parts:
        demand_fitting(part, {None: (config, ALONE)})
    demand_offset(parts)
    return rows_of(parts, config, needs)


def demand_fitting(part: Parcel, layers: Mapping[int | None, tuple[Config, Sort]]) -> None:
    """Refuse a part that is damaged, of none of these layers, or not of its layer's config and sort."""
    if (why := part.damage()) is not None:
        raise refusals.damaged("MOVE-9", why)
    if part.sort.layer not in layers:
        raise refusals.no_layer("MOVE-26", part.sort.layer)
    config, sort = layers[part.sort.layer]
    if not fits(config, part.descriptor, sort.holds):
        raise refusals.geometry("MOVE-8", dict(part.descriptor))


def demand_offset(parts: Sequence[Parcel]) -> None:
    """Refuse parts of different offsets."""
    if len(offsets := sorted({part.offset for part in parts})) > 1:
        raise refusals.apart("MOVE-18", offsets)


def rows_of(parts: Sequence[Parcel], config: Config, needs: Sequence[int]) -> Pair:
    """The bytes of the rows of these positions, as `demand` gives them, of parts that fit. Refused where they lack
    a row."""
    there = {position for part in parts for position in part.positions}
    if missing := [position for position in needs if position not in there]:
        raise refusals.missing("MOVE-7", missing[0], parts[0].offset)
    first, behind, _ = heads_of(config)
    read = [(part, part.rows()) for part in parts]
    each = [_of_head(read, head, needs) for head in range(first, behind)]
    return Pair(*(np.ascontiguousarray(np.stack(rows, axis=1)).view(np.uint8) for rows in zip(*each, strict=True)))


def _of_head(read: Sequence[tuple[Parcel, Pair]], head: int, needs: Sequence[int]) -> Pair:
    """The rows of one head, `[batch, n, elements]`, each from the first part that has it."""
    found = dict[int, tuple[Array, Array]]()
    for part, (keys, values) in ((part, rows) for part, rows in read if head in part.heads):
        at = part.heads.index(head)
        for i, position in enumerate(part.positions):
            found.setdefault(position, (keys[:, at, i], values[:, at, i]))
    if missing := [position for position in needs if position not in found]:
        raise refusals.no_head("MOVE-17", head, missing[0])
    none = (rows[:, 0, :0] for rows in read[0][1])
    chosen = ([found[p][kind] for p in needs] for kind in (0, 1))
    return Pair(*(np.stack(rows, axis=1) if rows else like for rows, like in zip(chosen, none, strict=True)))


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

    def there(self) -> Sequence[int]:
        """The positions of the rows that are packed: `needed`, where it has them."""
        return self.needed(self.offset)

    @abstractmethod
    def runs(self) -> list[Run]:
        """Where the rows of `there` lie, in order."""

    @abstractmethod
    def take_over(self, rows: Place | None, offset: int) -> None:
        """Hold these rows, those of `needed`, and no others."""

    def has_room(self, offset: int) -> bool:
        """Whether there is room for an offset."""
        return True

    def pack(self) -> Parcel:
        """The rows that a next query sees beside its own, as they are kept."""
        place = gathered(self.space, self.store.geometry, self.runs())
        return sent(self.space, self.config, self.offset, self.there(), place)

    def unpack(self, *parts: Parcel) -> None:
        """Become a cache at the offset of the parts."""
        offset = parts[0].offset
        rows = demand(parts, self.config, self.needed(offset))
        if not self.has_room(offset):
            raise refusals.no_room("MOVE-10", offset, self.config.max_len)
        self.take_over(received(self.space, self.config, rows), offset)
