"""A window beside sinks as the list of all its tokens: its view says what is visible, one line at which position.

It knows nothing of slots. A row is known by its serial, and its position in the sequence is its index in the list.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvref.cite import cite
from kvref.list_model.caches import CacheModel
from kvref.list_model.snapshot import SavedTokens
from kvref.list_model.views import Sinks, View
from kvspec.errors import Refused
from kvspec.masks import Logical, Window
from kvspec.refusals import common


class SinkModel(CacheModel):
    """`first`: the oldest position after the sinks that a query of the last append sees."""

    kind = "sink"
    appended = ("SINK-5",)
    viewed = "SINK-7"
    saves_whole = True
    rewound, unmoved = ("SINK-9", "SINK-10"), ("SINK-8",)
    first = 0

    def _view(self) -> View:
        config = self.config
        if not config.window or not config.sinks or {config.beside, config.shifted} - {None, 1}:
            raise common.config("CACHE-3", self.kind, config)
        self.sinks, self.recent = config.sinks, config.window - (0 if config.beside else config.sinks)
        if self.recent <= 0:
            raise Refused("SINK-17", "no room beside the sinks")
        return Sinks(self.sinks, self.recent)

    def key(self) -> tuple[int, int | None]:
        """All offsets past a drop are alike."""
        return min(self.offset, self.sinks + self.recent + 1), self.queries

    def place(self, position: int) -> int:
        """The position, as queries of the last append see it, of the row at a position of the sequence."""
        shift = max(0, self.first - self.sinks) if self.config.shifted else 0
        return position if position < self.sinks else position - shift

    def take(self, serials: list[int]) -> None:
        """Take tokens in."""
        if serials:
            cite(*self._owed(len(serials)))
            self.first = max(0, self.offset - self.recent + 1)
        super().take(serials)

    def _owed(self, n: int) -> Iterator[str]:
        """The clauses on what the queries of an append of n rows see."""
        if n > 1:
            yield "SINK-4"
        if self.offset + n <= self.sinks + self.recent:
            yield "SINK-3"
        elif n == 1:
            yield "SINK-2" if self.config.beside else "SINK-1"

    def _mask_clauses(self, logical: Logical) -> Iterator[str]:
        yield "SINK-21"
        yield from ("SINK-22",) if any(isinstance(part, Window) for part in logical) else ()

    def positions(self) -> list[int]:
        """The positions of the rows that the last append's newest query sees."""
        if self.queries is None:
            raise Refused("SINK-20", "no history")
        cite("SINK-19" if self.config.shifted else "SINK-18", *(["SINK-20"] if self.queries == 0 else []))
        return [self.place(p) for p in self.own_view.sees(self.offset - 1, self.offset)] if self.queries else []

    def _reaches(self, to: int, end: int, saved: object = None) -> bool:
        """Whether it can go back to `to`: until it is full; when just full, if the claim says that it can."""
        full = self.sinks + self.recent
        return to == end or end < full or (end == full and self.claim.dialect("full") == "succeeds")

    def either(self, to: int) -> bool:
        """Whether a rewind may be taken or refused: it drops no row, of a full cache that is declared to refuse."""
        full = self.offset >= self.sinks + self.recent
        return self.claim.dialect("full") == "refused" and full and self._clamped(to) == self.offset

    def rewind(self, to: int) -> None:
        """Drop the tokens at and beyond `to`."""
        unmoved = self._clamped(to) == self.offset
        super().rewind(to)
        self.first = self.first if unmoved else 0

    def _out_of_reach(self, to: int) -> Refused:
        return Refused("SINK-12", "rows were dropped")

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        """Become what was saved, up to `to`."""
        super().restore(snapshot, to)
        self.first = 0

    def _beyond(self, snapshot: SavedTokens, to: int) -> Refused:
        return Refused("SNAP-33", "rows were dropped")

    def _restore_clause(self, snapshot: SavedTokens, to: int) -> str:
        return "SNAP-32"

    def _forget(self) -> None:
        """Be as if it was never written."""
        super()._forget()
        self.first = 0


model = SinkModel
