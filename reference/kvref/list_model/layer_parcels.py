"""Parcels of several layers in the list model: of each layer the names of what it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kvref.cite import cite
from kvref.list_model import parcels
from kvref.list_model.layer_branches import BranchingLayers
from kvref.list_model.parcels import NamedParcel, Serial
from kvref.list_model.rows import UNKNOWN
from kvref.list_model.views import State, View
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.parcels import ENCODER, STATE, TOKENS, Sort, of_state
from kvspec.refusals import parcels as refusals


class PackingLayers(BranchingLayers):
    """Tokens of which each layer of `own` has what its view needs, and the rows of an encoder for `crossing`."""

    config: Config
    crossing: Sequence[int]
    has: list[set[int]]
    encoded: Sequence[Sequence[int]]
    shaped: bool

    def sorts(self) -> dict[int | None, Sort]:
        """What the part of each layer is, of those that have one."""
        of = {layer: STATE if isinstance(view, State) else TOKENS for layer, view in self._viewed()}
        of |= dict.fromkeys(self.crossing, ENCODER)
        return {layer: Sort(layer, of[layer]) for layer in sorted(of)}

    def _viewed(self) -> Sequence[tuple[int, View]]:
        return list(zip(self.own, self.views, strict=True))

    def _config(self, sort: Sort) -> Config:
        """The geometry of the rows of a part."""
        one = self.config.changed(layers=None, of=None)
        return of_state(one) if sort.holds == STATE else one

    def _needs(self, sort: Sort, offset: int, encoded: int) -> Sequence[int]:
        """The positions of what a layer needs at an offset, where an encoder has so many rows."""
        if sort.holds == ENCODER:
            return range(encoded)
        if sort.holds == STATE:
            return range(max(0, offset - 1), offset)
        return self.views[self.own.index(sort.layer or 0)].needs(offset)

    def _cite_sorts(self) -> None:
        holds = {sort.holds for sort in self.sorts().values()}
        cite(*["MOVE-29"] * (ENCODER in holds), *["MOVE-30"] * (STATE in holds))

    def pack(self) -> list[NamedParcel]:
        """What each layer needs at the offset."""
        cite("MOVE-1", "MOVE-2", "MOVE-3", "MOVE-25", *["MOVE-15"] * (self.config.rank is not None))
        self._cite_sorts()
        return [self._part(sort) for sort in self.sorts().values()]

    def _part(self, sort: Sort) -> NamedParcel:
        """The part of a layer."""
        encoded, offset = self._encoded_rows(sort), len(self.tokens)
        positions = self._needs(sort, offset, len(encoded))
        if sort.holds == ENCODER:
            serials: list[Serial] = list(encoded)
        else:
            column = [token[self.own.index(sort.layer or 0)] for token in self.tokens]
            serials = [tuple(column) if sort.holds == STATE else column[p] for p in positions]
        return NamedParcel(self._config(sort), offset, positions, serials, sort=sort)

    def _encoded_rows(self, sort: Sort) -> Sequence[int]:
        """The rows of the encoder that a layer sees."""
        there = sort.holds == ENCODER and bool(self.encoded)
        return self.encoded[self.crossing.index(sort.layer or 0)] if there else ()

    def unpack(self, *parts: NamedParcel) -> None:
        """Become what was packed, in all layers or in none."""
        try:
            needed = self._demand(parts)
        except Refused:
            self.refused = "MOVE-28"
            raise
        found = {
            layer: parcels.one_each(_of(parts, layer), self._config(sort), needed[layer])
            for layer, sort in self.sorts().items()
        }
        cite("MOVE-4", "MOVE-5", "MOVE-6")
        self._cite_sorts()
        self._become(found, parts[0].offset)

    def _demand(self, parts: Sequence[NamedParcel]) -> dict[int | None, dict[int, set[Serial]]]:
        """By layer and position the serials of what is needed. Refused if any layer's is not there."""
        sorts = self.sorts()
        for part in parts:
            parcels.demand_one(part, self._config(sorts.get(part.sort.layer, part.sort)), sorts)
        for layer in sorts:
            if not _of(parts, layer):
                raise refusals.lacks_layer("MOVE-27", layer)
        parcels.demand_offset(parts)
        offset = parts[0].offset
        encoded = max((len(part.positions) for part in parts if part.sort.holds == ENCODER), default=0)
        return {
            layer: parcels.needed(_of(parts, layer), self._config(sort), self._needs(sort, offset, encoded))
            for layer, sort in sorts.items()
        }

    def _become(self, found: Mapping[int | None, Mapping[int, Serial]], offset: int) -> None:
        """Have these rows at the offset; what no layer needs there is not known."""
        columns = [self._column(found[layer], view, offset) for layer, view in self._viewed()]
        self.tokens = [*zip(*columns, strict=True)]
        self.has = [{*view.needs(offset)} for view in self.views]
        encoded = [[s for s in found[layer].values() if isinstance(s, int)] for layer in self.crossing]
        self.encoded = encoded if encoded and encoded[0] else ()
        self.queries, self.refused, self.shaped = 0, "", True
        self.lose_drafts()

    def _column(self, found: Mapping[int, Serial], view: View, offset: int) -> list[int]:
        """The serials of a layer's rows, one for each token."""
        if isinstance(view, State):
            return [serial for state in found.values() if isinstance(state, tuple) for serial in state]
        each = (found.get(p, UNKNOWN) for p in range(offset))
        return [serial for serial in each if isinstance(serial, int)]


def _of(parts: Sequence[NamedParcel], layer: int | None) -> list[NamedParcel]:
    """The parts of a layer."""
    return [part for part in parts if part.sort.layer == layer]
