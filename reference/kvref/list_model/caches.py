"""What all caches of one sequence share in the list model: their tokens, saved whole or in part, and moved.

Each kind is a class over `CacheModel`.
"""

from __future__ import annotations

from typing import ClassVar

from kvref.cite import cite
from kvref.list_model import parcels
from kvref.list_model.parcels import NamedParcel
from kvref.list_model.rows import UNKNOWN
from kvref.list_model.snapshot import SavedTokens, divided, merged
from kvref.list_model.tokens import TokenModel
from kvref.list_model.unsaid import Unsaid
from kvspec.errors import Refused
from kvspec.refusals import common
from kvspec.refusals import parcels as refusals_parcels


class CacheModel(TokenModel):
    """The tokens of a cache, and what it saves of them, packs, and takes back."""

    saves_whole: ClassVar[bool] = False
    """Whether a snapshot has all there is, and cannot be cut at a position."""

    def snapshot(self, start: int) -> SavedTokens | None:
        """Keep the tokens from `start` on; of a ring all of them."""
        self._demand_free("snapshot")
        cite("SNAP-5")
        first = max(0, start)
        if first >= self.offset:
            cite("SNAP-2")
            return None
        first = self._saved_from(first)
        saved = self.tokens[first:]
        return SavedTokens(
            *(self.kind, self.config, first, self.offset, saved, self.width),
            whole=self.saves_whole,
            floor=self.floor,
        )

    def pack(self) -> NamedParcel:
        """The tokens that a next query sees beside its own."""
        self._demand_free("pack")
        return parcels.packed(self.config, self.offset, self.own_view.needs(self.offset), self.tokens)

    def unpack(self, *parts: NamedParcel) -> None:
        """Become what was packed; tokens that nobody needs there are not known."""
        self._demand_free("unpack")
        offset = parts[0].offset
        needs = set(self._view().needs(offset))
        parcels.demand(parts, self.config, needs)
        self._demand_offset(offset)
        found = parcels.rows(parts, self.config, needs)
        cite("MOVE-4", "MOVE-5", "MOVE-6", "MOVE-12")
        self._forget()
        self.tokens = [found[p] if p in needs else UNKNOWN for p in range(offset)]
        self.floor = offset if UNKNOWN in self.tokens else 0
        self.width, self.shaped = len(needs), True

    def _demand_offset(self, offset: int) -> None:
        """Refuse an offset that there is no room for."""

    def _saved_from(self, start: int) -> int:
        """The first position of a snapshot from `start` on; 0 of what cannot be cut."""
        if self.saves_whole:
            return 0
        cite("SNAP-1")
        return start

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        """Become what was saved, up to `to`."""
        self._demand_free("restore")
        if snapshot is None:
            cite("SNAP-11")
            self.rewind(to)
            return
        self._demand_saved(snapshot, to)
        cite("SNAP-3", "SNAP-4", self._restore_clause(snapshot, to))
        self.width = self._restored_width(snapshot, to)
        self.tokens = (self.tokens[: snapshot.start] + snapshot.tokens)[:to]
        self.floor = snapshot.floor if snapshot.whole else 0
        self.shaped = True
        self.queries = None

    def can_restore(self, snapshot: SavedTokens | None, to: int) -> bool | None:
        """Whether a restore would be accepted; None where that is the engine's choice."""
        if self.unaware:
            raise Unsaid("any", kept=True)
        if self.in_round:
            cite("ASK-3")
            return False
        cite("ASK-2", "ASK-4")
        if snapshot is None:
            return None if self.either(to) else self._goes(to)
        try:
            self._demand_saved(snapshot, to)
        except Refused:
            return False
        return True

    def _demand_saved(self, snapshot: SavedTokens, to: int) -> None:
        """Refuse what cannot be put back here, and a target that cannot be reached with it."""
        snapshot.usable("restore", self.kind, self.config, "SNAP-10")
        if not 0 <= to <= snapshot.stop:
            raise common.restore_range("SNAP-8", to, snapshot.stop)
        if self.offset < snapshot.start:
            raise common.restore_gap("SNAP-9", self.offset, snapshot.start)
        if not self._reaches(to, snapshot.stop, snapshot):
            raise self._beyond(snapshot, to)
        if to < snapshot.floor:
            raise refusals_parcels.left_behind("MOVE-11", to, snapshot.floor)

    def _beyond(self, snapshot: SavedTokens, to: int) -> Refused:
        return common.restore_window("SNAP-13", to, snapshot.stop, self.config.window or 0)

    def _restored_width(self, snapshot: SavedTokens, to: int) -> int:
        return snapshot.width if snapshot.whole and to == snapshot.stop else to

    def _restore_clause(self, snapshot: SavedTokens, to: int) -> str:
        return "SNAP-7" if to < snapshot.start else "SNAP-6"

    def merge(self, parent: SavedTokens | None, child: SavedTokens | None) -> SavedTokens | None:
        """One of two; both are gone."""
        self._demand_free("merge")
        parts = [s for s in (parent, child) if s is not None]
        for s in parts:
            s.usable("merge", self.kind, self.config, "SNAP-21")
        return merged(parts)

    def split(self, snapshot: SavedTokens | None, at: int) -> tuple[SavedTokens | None, SavedTokens | None]:
        """Two of one; it is gone."""
        self._demand_free("split")
        if snapshot is None:
            cite("SNAP-25")
            return None, None
        snapshot.usable("split", self.kind, self.config, "SNAP-10")
        return divided(snapshot, at)
