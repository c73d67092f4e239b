"""Parcels in the list model: the names of rows, their positions and geometry, and whether its bytes are whole."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kvref.cite import cite
from kvref.list_model.unsaid import Unsaid
from kvspec.geometry import Config, heads_of, of_all_ranks
from kvspec.parcels import ROWS, VERSION
from kvspec.refusals import parcels as refusals


@dataclass(frozen=True)
class NamedParcel:
    """The serials of rows at these positions, in order."""

    config: Config
    offset: int
    positions: Sequence[int]
    serials: Sequence[int]
    whole: bool = True
    """Whether its bytes and version are those that were packed."""

    def rows(self) -> list[int]:
        """The serials of its rows."""
        return list(self.serials)

    def placed(self) -> dict[int, int]:
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


def demand(parts: Sequence[NamedParcel], config: Config, needs: Collection[int]) -> dict[int, set[int]]:
    """By position the serials that the heads of a cache have in parts; refused if one of these is damaged or does
    not fit, if they stand at different offsets, or lack a row."""
    for part in parts:
        if not part.whole:
            raise refusals.damaged("MOVE-9", "its bytes or its version are not those that were packed")
        theirs, ours = of_all_ranks(part.config), of_all_ranks(config)
        if any(getattr(theirs, name) != getattr(ours, name) for name in ROWS):
            raise refusals.geometry("MOVE-8", part.config)
    if len(offsets := {part.offset for part in parts}) > 1:
        raise refusals.apart("MOVE-18", sorted(offsets))
    if missing := {*needs}.difference(*(part.positions for part in parts)):
        raise refusals.missing("MOVE-7", min(missing), parts[0].offset)
    placed = [(range(*heads_of(part.config)[:2]), part.placed()) for part in parts]
    return {position: _of_heads(placed, config, position) for position in needs}


def _of_heads(placed: Sequence[tuple[range, dict[int, int]]], config: Config, position: int) -> set[int]:
    """The serials that a cache's heads have at a position: one, where all of them come from one row. `placed`: of
    each part its heads, and its serials by position."""
    found, own = set[int](), heads_of(config)
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
    found = demand(parts, config, needs)
    cite(*["MOVE-16"] * (len(parts) > 1 or heads_of(parts[0].config) != heads_of(config)))
    if any(len(serials) > 1 for serials in found.values()):
        raise Unsaid("ok")
    return {position: min(serials) for position, serials in found.items()}
