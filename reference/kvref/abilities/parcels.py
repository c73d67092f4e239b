"""Parcels: rows packed as a descriptor says that they lie, and rows found in one by what its descriptor says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from zlib import crc32

import numpy as np

from kvref.cite import cite
from kvref.memory import meter
from kvref.memory.forms import Kept
from kvspec.contract import Pair
from kvspec.geometry import Array, Config, heads_of
from kvspec.parcels import ALONE, Parcel, Sort, fits, spans
from kvspec.refusals import parcels as refusals

TOKENS_FIRST = "PNBHD"
"""The order in which the reference packs: row after row, all heads of a row together."""


class Packing(ABC):
    """A cache whose rows `[batch, kv_heads, n, dim]`, as they are kept, leave in parcels and come in them."""

    config: Config
    sort: Sort = ALONE

    def parcel(self, positions: Sequence[int], offset: int, rows: Pair) -> Parcel:
        """Rows of these positions, in order, and what they are."""
        cite("MOVE-1", "MOVE-2", "MOVE-3")
        names = ("batch", "k_dim", "v_dim", "dtype", "form")
        data = [self.laid_out(meter.fetched(a)) for a in rows]
        described = {
            "version": 1,
            **{name: getattr(self.config, name) for name in names},
            **self.heads_described(),
            **self.sort._asdict(),
            "offset": offset,
            "spans": spans(positions),
            "order": TOKENS_FIRST,
            "page": 1,
            "sums": [crc32(each) for each in data],
        }
        return Parcel(described, *data)

    def heads_described(self) -> dict[str, object]:
        """Which heads it has, and how many there are."""
        first, behind, all_ = heads_of(self.config)
        cite(*["MOVE-15"] * (self.config.rank is not None))
        return {"kv_heads": all_, "heads": [first, behind]}

    def laid_out(self, rows: Array) -> bytes:
        """The bytes of rows `[batch, kv_heads, n, dim]`, row after row."""
        return np.ascontiguousarray(rows.transpose(2, 0, 1, 3)).tobytes()

    def found(self, parts: Sequence[Parcel], needs: Sequence[int]) -> Pair:
        """The rows of these positions, in parts that are whole and of this geometry; each head from a part that has
        it."""
        self.demand(parts, needs)
        first, behind, _ = heads_of(self.config)
        made = Pair(*(np.empty((*a.shape[:2], len(needs), a.shape[3]), a.dtype) for a in Kept(self.config).none()))
        for part in parts:
            cite(*self._ways(part, len(parts)))
            at = {p: i for i, p in enumerate(part.positions)}
            there = [i for i, p in enumerate(needs) if p in at]
            own = [h for h in part.heads if first <= h < behind]
            for array, rows in zip(made, self.unfolded(part), strict=True):
                taken = rows[:, [h - part.heads.start for h in own]][:, :, [at[needs[i]] for i in there]]
                array[np.ix_(range(self.config.batch), [h - first for h in own], there)] = taken
        return made

    def _ways(self, part: Parcel, parts: int) -> list[str]:
        """The clause on heads from several parts, or from one that has others."""
        return ["MOVE-16"] if parts > 1 or [*part.heads] != [*range(*heads_of(self.config)[:2])] else []

    def demand(self, parts: Sequence[Parcel], needs: Sequence[int]) -> None:
        """Refuse parts that are damaged, of a layer that it is not, do not fit, stand at different offsets, or lack
        a row."""
        for part in parts:
            if (why := part.damage()) is not None:
                raise refusals.damaged("MOVE-9", why)
            if part.sort.layer != self.sort.layer:
                raise refusals.no_layer("MOVE-26", part.sort.layer)
            if not fits(self.config, part.descriptor, self.sort.holds):
                raise refusals.geometry("MOVE-8", dict(part.descriptor))
        if len(offsets := {part.offset for part in parts}) > 1:
            raise refusals.apart("MOVE-18", sorted(offsets))
        self.demand_each(parts, needs)

    def demand_each(self, parts: Sequence[Parcel], needs: Sequence[int]) -> None:
        """Refuse parts none of which has a row, or a head of it."""
        missing = sorted({*needs}.difference(*(part.positions for part in parts)))
        if missing:
            raise refusals.missing("MOVE-7", missing[0], parts[0].offset)
        for head in range(*heads_of(self.config)[:2]):
            there = {p for part in parts if head in part.heads for p in part.positions}
            if lacks := sorted({*needs} - there):
                raise refusals.no_head("MOVE-17", head, lacks[0])

    def unfolded(self, part: Parcel) -> Pair:
        """Keys and values `[batch, heads, n, dim]`, as they are kept, that lie as the descriptor says."""
        n, page, order = len(part.positions), part.descriptor["page"], part.descriptor["order"]
        outer, both, _ = order.partition("K")
        none, found = Kept(self.config).none(), list[Array]()
        shapes = [self._sizes(part, -(-n // page), page, a.shape[3]) for a in none]
        data = self.divided(part, [shapes[0][axis] for axis in outer], shapes) if both else part[1:]
        for cells, sizes, like in zip(data, shapes, none, strict=True):
            lying = np.frombuffer(cells, like.dtype).reshape([sizes[axis] for axis in order if axis != "K"])
            rows = lying.transpose([order.replace("K", "").index(axis) for axis in "BHPND"])
            found.append(rows.reshape(sizes["B"], sizes["H"], sizes["P"] * page, sizes["D"])[:, :, :n])
        return Pair(*found)

    def _sizes(self, part: Parcel, pages: int, page: int, width: int) -> dict[str, int]:
        """The size of each axis."""
        return {"B": self.config.batch, "H": len(part.heads), "P": pages, "N": page, "D": width}

    def divided(self, part: Parcel, outer: Sequence[int], shapes: Sequence[dict[str, int]]) -> tuple[bytes, bytes]:
        """The bytes of keys, and those of values, of one buffer in which they follow each other for every index of
        the axes outside."""
        times = max(1, int(np.prod(outer)))
        wide = [shape["D"] for shape in shapes]
        cells = np.frombuffer(part.keys, np.uint8).reshape(times, -1)
        keys = cells.shape[1] * wide[0] // sum(wide)
        return cells[:, :keys].tobytes(), cells[:, keys:].tobytes()


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

    def unpack(self, *parts: Parcel) -> None:
        """Become a cache at the offset of the parts, with the rows that its queries see."""
        offset = parts[0].offset
        rows = self.found(parts, self.needed(offset))
        self.demand_room(offset)
        cite("MOVE-4", "MOVE-5", "MOVE-6", "MOVE-12")
        self.take_over(rows, offset)
