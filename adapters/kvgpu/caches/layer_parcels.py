"""Parcels of layers on a device: the rows that all layers need are downloaded together, and come back together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvgpu.caches.layer_branches import Drafts
from kvgpu.caches.parcels import demand_fitting, demand_offset, rows_of
from kvgpu.memory.encoder_rows import EncoderRows
from kvgpu.memory.layer_rows import LayerRows
from kvgpu.memory.states import States
from kvspec.contract import Pair
from kvspec.geometry import Array, Config
from kvspec.parcels import ENCODER, STATE, TOKENS, Parcel, Sort, of_state, packed
from kvspec.refusals import parcels as refusals


class PackingLayers:
    """`own` are the layers that are given rows, and `states_of` those of them that fold these. `crossing` are the
    layers that show the rows of an encoder."""

    own: Sequence[int]
    crossing: Sequence[int]
    states_of: dict[int, int]
    rows: LayerRows
    folded: States
    encoder: EncoderRows
    drafts: Drafts
    offset: int
    queries: int

    def _layers(self) -> dict[int | None, tuple[Config, Sort]]:
        """The config and the sort of the part of each layer that has one."""
        one = self.rows.one
        found = {layer: (one, Sort(layer, TOKENS)) for layer in self.own}
        found |= {layer: (of_state(one), Sort(layer, STATE)) for layer in self.states_of}
        found |= {layer: (one, Sort(layer, ENCODER)) for layer in self.crossing}
        return {layer: found[layer] for layer in sorted(found)}

    def _needed(self, sort: Sort, offset: int, encoded: int) -> Sequence[int]:
        """The positions of what a layer needs at an offset, where an encoder has so many rows."""
        if sort.holds == ENCODER:
            return range(encoded)
        if sort.holds == STATE:
            return range(max(0, offset - 1), offset)
        return self.rows.views[self.own.index(sort.layer or 0)].needed(offset)

    def pack(self) -> list[Parcel]:
        """What each layer needs at the offset, as it is kept."""
        found = dict(zip(self.own, self.rows.packed(self.offset), strict=True))
        if self.states_of:
            states = self.folded.read(self.offset)
            found |= {layer: self._state_row(states[i]) for layer, i in self.states_of.items()}
        found |= dict(zip(self.crossing, self.encoder.packed(), strict=True))
        return [self._part(config, sort, found[sort.layer or 0]) for config, sort in self._layers().values()]

    def _part(self, config: Config, sort: Sort, rows: Pair) -> Parcel:
        """The part of a layer that needs these rows."""
        positions = self._needed(sort, self.offset, self.encoder.count)
        return packed(config, self.offset, positions, rows, sort=sort)

    def _state_row(self, state: Array) -> Pair:
        """A state as a row of keys `[k_dim, kv_heads, 1, v_dim]`; none at offset 0."""
        keys = state.transpose(1, 0, 2)[:, :, None][:, :, : self.offset]
        return Pair(keys, keys[..., :0])

    def unpack(self, *parts: Parcel) -> None:
        """Become a cache at the offset of the parts, in all layers. Refused before any of them is changed."""
        layers, of = self._layers(), dict[int | None, list[Parcel]]()
        for part in parts:
            demand_fitting(part, layers)
            of.setdefault(part.sort.layer, []).append(part)
        if lacking := [layer for layer in layers if layer not in of]:
            raise refusals.lacks_layer("MOVE-27", lacking[0])
        demand_offset(parts)
        offset, encoded = parts[0].offset, max(map(_encoded, parts))
        found = {
            layer: rows_of(of[layer], config, self._needed(sort, offset, encoded))
            for layer, (config, sort) in layers.items()
        }
        self._become(found, offset)

    def _become(self, found: dict[int | None, Pair], offset: int) -> None:
        """Hold these bytes of rows and states, and no others. Raises MemoryError."""
        self.folded.ready()
        rows = self.encoder.received([found[layer] for layer in self.crossing])
        own = [self.rows.none if layer in self.states_of else found[layer] for layer in self.own]
        self.rows.receive(own, offset)
        self.folded.receive([_state(found[layer].keys) for layer in self.states_of] if offset else [])
        self.encoder.adopt(rows)
        self.drafts.release()
        self.offset, self.queries = offset, 0


def _encoded(part: Parcel) -> int:
    """How many rows of an encoder there are in a part."""
    return len(part.positions) if part.sort.holds == ENCODER else 0


def _state(row: Array) -> Array:
    """The state `[kv_heads, k_dim, v_dim]` that came as a row."""
    return np.ascontiguousarray(row[:, :, 0].transpose(1, 0, 2)).view(np.float32)
