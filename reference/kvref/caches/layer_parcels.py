"""Parcels of several layers: a part for each that has rows or a state, and all of them are taken or none."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from kvref.abilities.parcels import Packing
from kvref.caches.layer_branches import BranchingLayers
from kvref.cite import cite
from kvref.memory.rows import Rows
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import Array, Config
from kvspec.parcels import ENCODER, STATE, TOKENS, Parcel, Sort, fits, of_state
from kvspec.refusals import parcels as refusals


class PackedLayer(Packing):
    """One layer of a cache, whose rows or state are a part of a parcel."""

    def __init__(self, config: Config, sort: Sort) -> None:
        self.config, self.sort = config, sort


class PackingLayers(BranchingLayers):
    """A cache of layers: `folds` has the states of those that have one, and `encoded` the rows of the encoder for
    those `crossing`."""

    crossing: list[int]
    folds: dict[int, Array]
    encoded: Rows | None

    @abstractmethod
    def needed_at(self, layer: int, offset: int) -> list[int]:
        """The positions of the rows that a layer needs at an offset."""

    @abstractmethod
    def kept_at(self, layer: int, positions: Sequence[int]) -> Pair:
        """The rows of a layer at these positions, as they are kept."""

    @abstractmethod
    def hold(self, layer: int, rows: Pair, offset: int) -> None:
        """Have in a layer these rows, those that it needs at an offset, and no others."""

    def packings(self) -> dict[int, PackedLayer]:
        """Each layer that has rows of its own, a state, or those of the encoder."""
        return {layer: self._packing(layer) for layer in sorted([*self.own, *self.crossing])}

    def _packing(self, layer: int) -> PackedLayer:
        """What a layer packs."""
        if layer in self.folds:
            return PackedLayer(of_state(self.one), Sort(layer, STATE))
        return PackedLayer(self.one, Sort(layer, ENCODER if layer in self.crossing else TOKENS))

    def needed(self, layer: int, offset: int, encoded: int) -> list[int]:
        """The positions of what a layer needs at an offset, where an encoder has so many rows."""
        if layer in self.crossing:
            return list(range(encoded))
        if layer in self.folds:
            return list(range(max(0, offset - 1), offset))
        return self.needed_at(layer, offset)

    def pack(self) -> list[Parcel]:
        """What each layer needs at the offset, with a descriptor of its own."""
        cite("MOVE-25", *["MOVE-29"] * bool(self.crossing), *["MOVE-30"] * bool(self.folds))
        encoded = 0 if self.encoded is None else len(self.encoded)
        parts = []
        for layer, packing in self.packings().items():
            positions = self.needed(layer, self.offset, encoded)
            parts.append(packing.parcel(positions, self.offset, self._packed_rows(layer, positions)))
        return parts

    def _packed_rows(self, layer: int, positions: Sequence[int]) -> Pair:
        """The rows of a layer at these positions, as they are kept."""
        if layer in self.folds:
            return self._state_row(self.folds[layer], len(positions))
        if layer not in self.crossing:
            return self.kept_at(layer, positions)
        rows = Rows(self.one.changed(batch=len(self.crossing))) if self.encoded is None else self.encoded
        which = self.crossing.index(layer)
        return Pair(*(a[which : which + 1] for a in rows.part(0, len(positions))))

    def _state_row(self, state: Array, rows: int) -> Pair:
        """A state as one row of keys `[k_dim, kv_heads, 1, v_dim]`, or as none; without values."""
        keys = state.transpose(1, 0, 2)[:, :, None][:, :, :rows]
        return Pair(keys, keys[..., :0])

    def unpack(self, *parts: Parcel) -> None:
        """Become a cache at the offset of the parts, in all layers, or stay as it is."""
        try:
            found = self._found(parts)
        except Refused:
            self.refused = "MOVE-28"
            raise
        cite("MOVE-4", "MOVE-5", "MOVE-6")
        cite(*["MOVE-29"] * bool(self.crossing), *["MOVE-30"] * bool(self.folds))
        self._take_over(found, parts[0].offset)

    def _found(self, parts: Sequence[Parcel]) -> dict[int, Pair]:
        """What each layer needs, of parts of which all is known before one is taken."""
        packings = self.packings()
        for part in parts:
            self._demand_part(part, packings)
        of = {layer: [part for part in parts if part.sort.layer == layer] for layer in packings}
        for layer in packings:
            if not of[layer]:
                raise refusals.lacks_layer("MOVE-27", layer)
        if len(offsets := {part.offset for part in parts}) > 1:
            raise refusals.apart("MOVE-18", sorted(offsets))
        offset, encoded = parts[0].offset, self._encoded_in(parts)
        return {
            layer: packing.found(of[layer], self.needed(layer, offset, encoded))
            for layer, packing in packings.items()
        }

    def _demand_part(self, part: Parcel, packings: Mapping[int, PackedLayer]) -> None:
        """Refuse a part that is damaged, of a layer that has no rows here, or does not fit."""
        if (why := part.damage()) is not None:
            raise refusals.damaged("MOVE-9", why)
        layer = part.sort.layer
        if layer is None or layer not in packings:
            raise refusals.no_layer("MOVE-26", layer)
        packing = packings[layer]
        if not fits(packing.config, part.descriptor, packing.sort.holds):
            raise refusals.geometry("MOVE-8", dict(part.descriptor))

    def _encoded_in(self, parts: Sequence[Parcel]) -> int:
        """How many rows an encoder has: as many as any of its layers has in the parts."""
        return max((p + 1 for part in parts if part.sort.holds == ENCODER for p in part.positions), default=0)

    def _take_over(self, found: Mapping[int, Pair], offset: int) -> None:
        """Hold in each layer these rows, or this state, and no others."""
        for layer in self.own:
            if layer in self.folds:
                self.folds[layer] = self._state_of(found[layer].keys)
            else:
                self.hold(layer, found[layer], offset)
        crossing = [found[layer] for layer in self.crossing]
        self.encoded = None
        if crossing and crossing[0].keys.shape[2]:
            self.encoded = Rows(self.one.changed(batch=len(crossing)))
            self.encoded.join(Pair(*(np.concatenate(each) for each in zip(*crossing, strict=True))))
        self.offset, self.queries, self.refused = offset, 0, ""
        self.lose_drafts()

    def _state_of(self, row: Array) -> Array:
        """The state that came as a row; zeros where none did."""
        found = row[:, :, 0] if row.shape[2] else np.zeros((row.shape[0], *row.shape[1::2]), row.dtype)
        return np.ascontiguousarray(found.transpose(1, 0, 2))
