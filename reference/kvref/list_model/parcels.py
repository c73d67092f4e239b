"""Parcels in the list model: the names of rows, their positions and geometry, and whether its bytes are whole."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kvref.cite import cite
from kvspec.geometry import Config
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

    def carried(
        self, order: str, page: int, cut: int = 0, flip: int | None = None, version: int | None = None
    ) -> NamedParcel:
        """The same rows however they lie; not whole where bytes are cut or changed, or the version is another."""
        damaged = bool(self.serials) and (cut > 0 or flip is not None)
        return replace(self, whole=self.whole and not damaged and version in (None, VERSION))


def packed(config: Config, offset: int, positions: Sequence[int], tokens: Sequence[int]) -> NamedParcel:
    """What leaves of the tokens of a sequence."""
    cite("MOVE-1", "MOVE-2", "MOVE-3")
    return NamedParcel(config, offset, positions, [tokens[p] for p in positions])


def demand(parcel: NamedParcel, config: Config, needs: Collection[int]) -> dict[int, int]:
    """The serials of a parcel by position; refused if it is damaged, does not fit, or lacks a row."""
    if not parcel.whole:
        raise refusals.damaged("MOVE-9", "its bytes or its version are not those that were packed")
    if any(getattr(parcel.config, name) != getattr(config, name) for name in ROWS):
        raise refusals.geometry("MOVE-8", parcel.config)
    found = dict(zip(parcel.positions, parcel.serials, strict=True))
    if missing := {*needs} - {*found}:
        raise refusals.missing("MOVE-7", min(missing), parcel.offset)
    return found
