"""Parcels: rows packed as a descriptor says that they lie, and rows found in one by what its descriptor says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from zlib import crc32

import numpy as np

from kvref.cite import cite
from kvref.forms import Kept
from kvref.memory import meter
from kvspec.contract import Pair
from kvspec.geometry import Array, Config
from kvspec.parcels import Parcel, fits, spans
from kvspec.refusals import parcels as refusals

TOKENS_FIRST = "PNBHD"
"""The order in which the reference packs: row after row, all heads of a row together."""


class Packing(ABC):
    """A cache whose rows `[batch, kv_heads, n, dim]`, as they are kept, leave in parcels and come in them."""

    config: Config

    def parcel(self, positions: Sequence[int], offset: int, rows: Pair) -> Parcel:
        """Rows of these positions, in order, and what they are."""
        cite("MOVE-1", "MOVE-2", "MOVE-3")
        names = ("batch", "kv_heads", "k_dim", "v_dim", "dtype", "form")
        data = [self.laid_out(meter.fetched(a)) for a in rows]
        described = {
            "version": 1,
            **{name: getattr(self.config, name) for name in names},
            "offset": offset,
            "spans": spans(positions),
            "order": TOKENS_FIRST,
            "page": 1,
            "sums": [crc32(each) for each in data],
        }
        return Parcel(described, *data)

    def laid_out(self, rows: Array) -> bytes:
        """The bytes of rows `[batch, kv_heads, n, dim]`, row after row."""
        return np.ascontiguousarray(rows.transpose(2, 0, 1, 3)).tobytes()

    def found(self, parcel: Parcel, needs: Sequence[int]) -> Pair:
        """The rows of these positions in a parcel that is whole and of this geometry."""
        self.demand(parcel, needs)
        at = {p: i for i, p in enumerate(parcel.positions)}
        chosen, like = [at[p] for p in needs], Kept(self.config).none()
        read = map(self.unfolded, (parcel, parcel), (parcel.keys, parcel.values), like)
        return Pair(*(rows[:, :, chosen] for rows in read))

    def demand(self, parcel: Parcel, needs: Sequence[int]) -> None:
        """Refuse a parcel that is damaged, does not fit, or lacks a row."""
        if (why := parcel.damage()) is not None:
            raise refusals.damaged("MOVE-9", why)
        if not fits(self.config, parcel.descriptor):
            raise refusals.geometry("MOVE-8", dict(parcel.descriptor))
        missing = sorted({*needs} - {*parcel.positions})
        if missing:
            raise refusals.missing("MOVE-7", missing[0], parcel.offset)

    def unfolded(self, parcel: Parcel, data: bytes, like: Array) -> Array:
        """Rows `[batch, kv_heads, n, dim]`, of the dtype and width of others, that lie as the descriptor says."""
        n, page, order = len(parcel.positions), parcel.descriptor["page"], parcel.descriptor["order"]
        batch, heads, _, width = like.shape
        sizes = {"B": batch, "H": heads, "P": -(-n // page), "N": page, "D": width}
        cells = np.frombuffer(data, like.dtype).reshape([sizes[axis] for axis in order])
        rows = cells.transpose([order.index(axis) for axis in "BHPND"])
        return rows.reshape(batch, heads, sizes["P"] * page, width)[:, :, :n]


class PackingOne(Packing):
    """A cache of one sequence: `needed` are the positions of the rows that a next query sees beside its own."""

    offset: int

    @abstractmethod
    def needed(self, offset: int) -> list[int]:
        """The positions that queries at an offset or later see below it."""

    @abstractmethod
    def kept_rows(self) -> Pair:
        """The rows of `needed`, in order, as they are kept."""

    @abstractmethod
    def take_over(self, rows: Pair, offset: int) -> None:
        """Hold these rows, those of `needed`, and no others."""

    def demand_room(self, offset: int) -> None:
        """Refuse an offset that there is no room for."""

    def pack(self) -> Parcel:
        """What a next query sees beside its own row, with its descriptor."""
        return self.parcel(self.needed(self.offset), self.offset, self.kept_rows())

    def unpack(self, parcel: Parcel) -> None:
        """Become a cache at the parcel's offset, with the rows that its queries see."""
        rows = self.found(parcel, self.needed(parcel.offset))
        self.demand_room(parcel.offset)
        cite("MOVE-4", "MOVE-5", "MOVE-6", "MOVE-12")
        self.take_over(rows, parcel.offset)
