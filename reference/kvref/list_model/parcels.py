"""Parcels in the list model: the names of rows, their positions and geometry, and whether its bytes are whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kvref.cite import cite
from kvref.list_model.unsaid import Unsaid
from kvspec.geometry import Config, heads_of, of_all_ranks
from kvspec.parcels import ALONE, ROWS, VERSION, Sort
from kvspec.refusals import parcels as refusals

Serial = int | tuple[int, ...]
"""What names a row, or a state."""


@dataclass(frozen=True)
class NamedParcel:
    """The serials of rows at these positions, in order. That of a state is the serials of all that it is made
    of."""

    config: Config
    offset: int
    positions: Sequence[int]
    serials: Sequence[Serial]
    whole: bool = True
    """Whether its bytes and version are those that were packed."""
    sort: Sort = ALONE

    def rows(self) -> list[Serial]:
        """The serials of its rows."""
        return list(self.serials)

    def state(self) -> list[int]:
        """The serials of the rows that its state is made of."""
        return [serial for state in self.serials if isinstance(state, tuple) for serial in state]

    def placed(self) -> dict[int, Serial]:
        """The serials of its rows, by position."""
        return dict(zip(self.positions, self.serials, strict=True))

    def carried(
        self, order: str, page: int, cut: int = 0, flip: int | None = None, version: int | None = None
    ) -> NamedParcel:
        """The same rows however they lie; not whole where bytes are cut or changed, or the version is another."""
        damaged = bool(self.serials) and (cut > 0 or flip is not None)
        return replace(self, whole=self.whole and not damaged and version in (None, VERSION))


def packed(config: Config, offset: int, positions: Sequence[int], tokens: Sequence[int]) -> NamedParcel:
    """What leaves of the tokens of a sequence."""
    cite("MOVE-1", "MOVE-2", "MOVE-3", *["MOVE-15"] * (config.rank is not None))
    return NamedParcel(config, offset, positions, [tokens[p] for p in positions])


def demand_one(part: NamedParcel, config: Config, sorts: Mapping[int | None, Sort]) -> None:
    """Refuse a part that is damaged, of a layer that is none of these, or does not fit."""
    if not part.whole:
        raise refusals.damaged("MOVE-9", "its bytes or its version are not those that were packed")
    if part.sort.layer not in sorts:
        raise refusals.no_layer("MOVE-26", part.sort.layer)
    theirs, ours = of_all_ranks(part.config), of_all_ranks(config)
    alike = part.sort == sorts[part.sort.layer]
    if not alike or any(getattr(theirs, name) != getattr(ours, name) for name in ROWS):
        raise refusals.geometry("MOVE-8", part.config)


def demand_offset(parts: Sequence[NamedParcel]) -> None:
    """Refuse parts that stand at different offsets."""
    if len(offsets := {part.offset for part in parts}) > 1:
        raise refusals.apart("MOVE-18", sorted(offsets))


def demand(parts: Sequence[NamedParcel], config: Config, needs: Collection[int]) -> dict[int, set[Serial]]:
    """By position the serials that the heads of a cache have in parts. Refused if a part is damaged or does not
    fit, if parts stand at different offsets, or if they lack a row."""
    for part in parts:
        demand_one(part, config, {None: ALONE})
    demand_offset(parts)
    return needed(parts, config, needs)


def needed(parts: Sequence[NamedParcel], config: Config, needs: Collection[int]) -> dict[int, set[Serial]]:
    """The same of parts that fit; refused if they lack a row."""
    if missing := {*needs}.difference(*(part.positions for part in parts)):
        raise refusals.missing("MOVE-7", min(missing), parts[0].offset)
    placed = [(range(*heads_of(part.config)[:2]), part.placed()) for part in parts]
    return {position: _of_heads(placed, config, position) for position in needs}


def _of_heads(placed: Sequence[tuple[range, dict[int, Serial]]], config: Config, position: int) -> set[Serial]:
    """The serials that a cache's heads have at a position: one, where all of them come from one row. `placed`: of
    each part its heads, and its serials by position."""
    found, own = set[Serial](), heads_of(config)
    there = [(heads, serials[position]) for heads, serials in placed if position in serials]
    for head in range(own.first, own.behind):
        holders = {serial for heads, serial in there if head in heads}
        if not holders:
            raise refusals.no_head("MOVE-17", head, position)
        found |= holders
    return found


def rows(parts: Sequence[NamedParcel], config: Config, needs: Collection[int]) -> dict[int, int]:
    """The serial of each row by position. Raises Unsaid where heads come from rows of unlike names: that of such a
    row is not known."""
    found = one_each(parts, config, demand(parts, config, needs))
    return {position: serial for position, serial in found.items() if isinstance(serial, int)}


def one_each(parts: Sequence[NamedParcel], config: Config, found: Mapping[int, set[Serial]]) -> dict[int, Serial]:
    """The one serial of each row by position. Raises Unsaid as `rows` does."""
    cite(*["MOVE-16"] * (len(parts) > 1 or heads_of(parts[0].config) != heads_of(config)))
    if any(len(serials) > 1 for serials in found.values()):
        raise Unsaid("ok")
    return {position: next(iter(serials)) for position, serials in found.items()}
