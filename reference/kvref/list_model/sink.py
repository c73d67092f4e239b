"""A window beside sinks as the list of all its tokens: its view says what is visible, one line at which position.

It knows nothing of slots. A row is known by its serial, and its position in the sequence is its index in the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvref.cite import cite
from kvref.list_model.caches import CacheModel
from kvref.list_model.rows import UNKNOWN
from kvref.list_model.snapshot import SavedTokens
from kvref.list_model.views import Chosen, Sinks, View
from kvspec.errors import Refused
from kvspec.masks import Logical, Window
from kvspec.refusals import common


class SinkModel(CacheModel):
    """`first`: how many rows precede the oldest of those that a query of the last append sees beside the sinks."""

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

    def key(self) -> tuple[int | None, ...]:
        """All offsets past a drop are alike; of rows that were chosen it matters how many were."""
        full = self.rank(self.offset) > self.sinks + self.recent
        chosen = () if full or not self.chosen_at else (self.offset - self.chosen_at,)
        return min(self.rank(self.offset), self.sinks + self.recent + 1), self.queries, *chosen

    @property
    def chosen_at(self) -> int:
        """The offset at which the rows that it goes on with were chosen; 0 where that was not done."""
        return self.own_view.at if isinstance(self.own_view, Chosen) else 0

    def rank(self, position: int) -> int:
        """How many of the rows that it goes on with lie below a position."""
        return self.own_view.rank(position) if isinstance(self.own_view, Chosen) else position

    def numbered(self) -> dict[int, int]:
        """The number of each token among those that it goes on with."""
        rows = self.own_view.rows if isinstance(self.own_view, Chosen) else ()
        return {s: self.rank(p) for p, s in enumerate(self.tokens) if p >= self.chosen_at or p in rows}

    def place(self, position: int) -> int:
        """The position, as queries of the last append see it, of the row at a position of the sequence."""
        if not self.config.shifted:
            return position
        number = self.rank(position)
        return number if number < self.sinks else number - max(0, self.first - self.sinks)

    def take(self, serials: list[int]) -> None:
        """Take tokens in."""
        if serials:
            cite(*self._owed(len(serials)))
            self.first = max(0, self.rank(self.offset) - self.recent + 1)
        super().take(serials)

    def _owed(self, n: int) -> Iterator[str]:
        """The clauses on what the queries of an append of n rows see."""
        if self.chosen_at:
            yield from ("SINK-37", "SINK-38")
        if n > 1:
            yield "SINK-4"
        if self.rank(self.offset) + n <= self.sinks + self.recent:
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
        cite(*["SINK-39"] * bool(self.chosen_at))
        return [self.place(p) for p in self.own_view.sees(self.offset - 1, self.offset)] if self.queries else []

    def view(self) -> list[int]:
        """What a next query would see beside itself."""
        cite(*["SINK-37"] * bool(self.chosen_at))
        return super().view()

    def seen(self) -> list[int]:
        """The positions that the newest query sees, but for rows that were left behind when it was unpacked."""
        return [p for p in self.own_view.sees(self.offset - 1, self.offset) if self.tokens[p] != UNKNOWN]

    def keep(self, positions: Sequence[int]) -> None:
        """Go on with the tokens of these positions alone."""
        if not positions or len({*positions}) < len(positions) or not {*positions} <= {*self.seen()}:
            raise Refused("SINK-41", "no row, one twice, or one that is not seen")
        cite("SINK-38", *["SINK-40"] * (list(positions) != sorted(positions)))
        if len(positions) < self.rank(self.offset):
            self.own_view = Chosen(self._view(), tuple(sorted(positions)), self.offset)
        self.width, self.queries, self.first = len(positions), None, 0

    def _reaches(self, to: int, end: int, saved: SavedTokens | None = None) -> bool:
        """Whether it can go back to `to`, though not past a choice. It can until it is full, and when it is just
        full if the claim says so."""
        view = self.own_view if saved is None else saved.view
        rows, at = (view.rank(end), view.at) if isinstance(view, Chosen) else (end, 0)
        full = self.sinks + self.recent
        kept = rows < full or (rows == full and self.claim.dialect("full") == "succeeds")
        return to == end or (to >= at and kept)

    def either(self, to: int) -> bool:
        """Whether a rewind may be taken or refused: it drops no row, of a full cache that is declared to refuse."""
        full = self.rank(self.offset) >= self.sinks + self.recent
        return self.claim.dialect("full") == "refused" and full and self._clamped(to) == self.offset

    def rewind(self, to: int) -> None:
        """Drop the tokens at and beyond `to`."""
        unmoved = self._clamped(to) == self.offset
        super().rewind(to)
        cite(*["SINK-42"] * bool(self.chosen_at and not unmoved))
        self.first = self.first if unmoved else 0

    def _out_of_reach(self, to: int) -> Refused:
        chosen = to < self.chosen_at and self.rank(self.offset) <= self.sinks + self.recent
        return Refused("SINK-42" if chosen else "SINK-12", "rows were dropped")

    def snapshot(self, start: int) -> SavedTokens | None:
        """Keep all tokens, and which of them were chosen."""
        saved = super().snapshot(start)
        if saved is not None:
            cite(*["SNAP-35"] * bool(self.chosen_at))
            saved.view = self.own_view
        return saved

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        """Become what was saved, up to `to`."""
        super().restore(snapshot, to)
        if snapshot is not None:
            self.own_view = snapshot.view or self._view()
        self.first = 0

    def _beyond(self, snapshot: SavedTokens, to: int) -> Refused:
        view = snapshot.view
        chosen = isinstance(view, Chosen) and to < view.at and view.rank(snapshot.stop) <= self.sinks + self.recent
        return Refused("SNAP-35" if chosen else "SNAP-33", "rows were dropped")

    def _restore_clause(self, snapshot: SavedTokens, to: int) -> str:
        return "SNAP-32"

    def _forget(self) -> None:
        """Be as if it was never written."""
        super()._forget()
        self.own_view, self.first = self._view(), 0


model = SinkModel
