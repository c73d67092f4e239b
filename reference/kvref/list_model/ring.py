"""Rings in the list model: a query sees the newest tokens."""

from __future__ import annotations

from collections.abc import Iterator

from kvref.cite import cite
from kvref.list_model.attention import KnownRows
from kvref.list_model.caches import CacheModel
from kvref.list_model.parcels import NamedParcel
from kvref.list_model.snapshot import SavedTokens
from kvref.list_model.unsaid import Unsaid
from kvref.list_model.views import View, Window
from kvspec.contract import Attention, Claim
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.refusals import common


class RingModel(CacheModel):
    """A window, and what an engine is declared to keep and to take back beside it."""

    kind = "ring"
    appended = "RING-1", "RING-2", "RING-17"
    viewed = "RING-5"
    rewound, unmoved = ("RING-7", "CACHE-8"), ("RING-6",)
    drafted = "DRAFT-3"
    masked_several = ("MASK-8",)
    saves_whole = True

    def __init__(self, config: Config, known: KnownRows, claim: Claim) -> None:
        super().__init__(config, known, claim)
        self._begin()

    def _begin(self) -> None:
        self.held: list[int] | None = []
        """Tokens that it still has; None if they are not known."""
        self.highest = self.before = 0
        """The highest offset since the last free or restore, and the offset before the last append."""

    def _view(self) -> View:
        if self.config.window is None:
            raise common.config("CACHE-3", self.kind, self.config)
        self.window: int = self.config.window
        return Window(self.window)

    def key(self) -> tuple[int, int | None]:
        """All offsets past the window are alike."""
        return min(self.offset, self.window + 1), self.queries

    def _demand_chunk(self, n: int) -> None:
        """Refuse more rows at once than are declared. Raises Unsaid where that follows from what was not seen."""
        if self.unseen and self.claim.dialect("chunk") == "capacity" and n > self.least():
            raise Unsaid("ok refused")
        largest = self.claim.largest_append(self.config, self.capacity)
        if largest is not None and n > largest:
            raise Refused("RING-3", f"append of {n} rows: at most {largest} at once")

    def take(self, serials: list[int]) -> None:
        """Take tokens in."""
        super().take(serials)
        if not serials:
            return
        cite(*(["RING-3"] if len(serials) > 1 else []))
        self.held = None if self.held is None else self._kept(self.held) + serials
        self.before, self.highest = self.offset - len(serials), max(self.highest, self.offset)

    def _kept(self, held: list[int]) -> list[int]:
        """The old rows that an append leaves."""
        kept = self.claim.old_rows(self.config)
        return held if kept is None else held[max(0, len(held) - kept) :]

    def least(self) -> int:
        """Rows that must be retained: those that the newest query sees, or that it is declared to keep."""
        if self.claim.dialect("keeps") == "any" or self.held is None:
            return super().least()
        return len(self._kept(self.held))

    def handed_out(self) -> list[int] | None:
        """The rows of the history, where it is declared which are there."""
        return None if self.claim.dialect("keeps") == "any" else self.held

    def _attended(self, how: Attention) -> Iterator[str]:
        """The clauses on attention that hold for this kind alone."""
        yield from ("ATTN-6",) if self.offset > self.window else ()
        yield from ("ROPE-20",) if how.rope else ()

    def _reaches(self, to: int, end: int, saved: SavedTokens | None = None) -> bool:
        """Whether a ring that stands at `end`, or was saved there, can go back to `to`."""
        declared = self.claim.dialect("rewind")
        highest, before = (saved.highest, saved.stop) if saved else (self.highest, self.before)
        if to == end or declared == -1:
            return True
        if isinstance(declared, int):
            return highest <= self.window or highest - to <= declared
        return {"below": end < self.window, "since append": highest <= self.window or to >= before}.get(
            declared, False
        )

    def either(self, to: int) -> bool:
        """Whether it is right to take and to refuse a rewind: one of no rows, past what is declared."""
        unmoved = self._clamped(to) == self.offset
        return unmoved and self.claim.dialect("rewind") == "below" and self.offset >= self.window

    def rewind(self, to: int) -> None:
        """Drop the tokens at and beyond `to`."""
        before = self.offset
        super().rewind(to)
        self.held = None if self.held is None else self.held[: len(self.held) - (before - self.offset)]

    def keep_drafts(self, start: int, drafts: list[int]) -> None:
        """Of the rows that were appended in a round keep these; which others are still there is not known."""
        super().keep_drafts(start, drafts)
        self.held, self.highest, self.before = None, self.offset, self.offset

    def _out_of_reach(self, to: int) -> Refused:
        return common.rewind_window("RING-10", to, self.offset, self.window)

    def snapshot(self, start: int) -> SavedTokens | None:
        """Keep all tokens."""
        saved = super().snapshot(start)
        if saved is not None:
            saved.highest = self.highest
        return saved

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        """Become what was saved, up to `to`."""
        super().restore(snapshot, to)
        if snapshot is not None:
            self.held, self.highest, self.before = None, snapshot.highest, to

    def _forget(self) -> None:
        """Be as if it was never written."""
        super()._forget()
        self._begin()

    def unpack(self, *parts: NamedParcel) -> None:
        """Become what was packed."""
        super().unpack(*parts)
        self.held = self.view() if self.claim.dialect("keeps") != "any" else None
        self.highest = self.before = self.offset

    def _restore_clause(self, snapshot: SavedTokens, to: int) -> str:
        return "SNAP-12" if to == snapshot.stop else "SNAP-14"


model = RingModel
