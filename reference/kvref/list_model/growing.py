"""Growing caches in the list model, whose queries see all tokens, and a residual window, whose rows are to the
bit."""

from __future__ import annotations

from typing import ClassVar

from kvref.cite import cite
from kvref.list_model.attention import KnownRows
from kvref.list_model.caches import CacheModel
from kvref.list_model.parcels import NamedParcel
from kvref.list_model.snapshot import SavedTokens
from kvspec.contract import Claim
from kvspec.geometry import Config, newest


class GrowingModel(CacheModel):
    """Every token, for ever."""

    kind = "growing"
    appended: ClassVar[tuple[str, ...]] = ("GROW-1", "GROW-2")
    viewed = "GROW-4"
    rewound: ClassVar[tuple[str, ...]] = ("GROW-5", "CACHE-8")
    unmoved: ClassVar[tuple[str, ...]] = rewound
    drafted = "DRAFT-2"

    def __init__(self, config: Config, known: KnownRows, claim: Claim) -> None:
        super().__init__(config, known, claim)
        self.over = 0
        """How many tokens may have gone over into the form: the first ones."""

    def key(self) -> tuple[int | None, ...]:
        """The state up to renaming tokens."""
        return *super().key(), *([self.over] if newest(self.config) else [])

    def plain(self) -> frozenset[int]:
        """The tokens of the residual window."""
        return frozenset(self.tokens[self.over :] if newest(self.config) else ())

    def take(self, serials: list[int]) -> None:
        """Take tokens in; those that leave the window go over."""
        first = not self.tokens
        super().take(serials)
        if serials and (most := newest(self.config)):
            cite("ROW-25", *["ROW-26"] * (self.offset - self.over > most))
            self.over = self._gone_over(most, first)

    def _gone_over(self, most: int, first: bool) -> int:
        """How many tokens are in the form, by the dialect."""
        if self.claim.dialect("residual") == "newest":
            return max(self.over, self.offset - most)
        return self.offset if first or self.offset - self.over >= most else self.over

    def rewind(self, to: int) -> None:
        """Drop the tokens at and beyond `to`."""
        before = self.offset
        super().rewind(to)
        cite(*["ROW-27"] * bool(newest(self.config) and self.offset < before))
        self.over = min(self.over, self.offset)

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        """Become what was saved: all of it in the form."""
        super().restore(snapshot, to)
        if snapshot is not None:
            self._all_over()

    def unpack(self, *parts: NamedParcel) -> None:
        """Become what was packed: all of it in the form."""
        super().unpack(*parts)
        if self.tokens:
            self._all_over()

    def take_drafts(self, drafts: list[int]) -> None:
        """Take in the drafts of a round: all of it in the form."""
        super().take(drafts)
        if drafts:
            self._all_over()

    def keep_drafts(self, start: int, drafts: list[int]) -> None:
        """Of the rows that were appended in a round keep these; those in the form stay there."""
        super().keep_drafts(start, drafts)
        self.over = min(self.over, self.offset)

    def _all_over(self) -> None:
        cite(*["ROW-28"] * bool(newest(self.config)))
        self.over = self.offset

    def _forget(self) -> None:
        super()._forget()
        self.over = 0


model = GrowingModel
