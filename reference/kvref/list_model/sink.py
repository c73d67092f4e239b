"""A window beside sinks as the list of all its tokens: one line says what is visible, one at which position.

It knows nothing of slots. A row is known by its serial, and its position in the sequence is its index in the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvref.cite import cite
from kvref.list_model import masks
from kvref.list_model.attention import KnownRows
from kvref.list_model.caches import CacheModel, Scores, scores
from kvref.list_model.rows import Added
from kvspec.contract import Claim
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.masks import Logical, Window
from kvspec.refusals import common

CLAUSES = {
    "RING-1 RING-2 RING-17": "SINK-5",
    "RING-5": "SINK-7",
    "RING-6": "SINK-8",
    "RING-7 CACHE-8": "SINK-9 SINK-10",
}
"""The clauses of a ring, each with the clause that says the same about a window beside sinks."""


class SinkModel(CacheModel):
    """`first`: the oldest position after the sinks that a query of the last append sees."""

    def __init__(self, kind: str, config: Config, claim: Claim, known: KnownRows) -> None:
        window, sinks = config.window or 0, config.sinks or 0
        if not common.valid(config) or not window or not sinks or {config.beside, config.shifted} - {None, 1}:
            raise common.config("CACHE-3", kind, config)
        self.sinks, self.recent = sinks, window if config.beside else window - sinks
        if self.recent <= 0:
            raise Refused("SINK-17", "no room beside the sinks")
        super().__init__(kind, config.changed(window=None), claim, known)
        self.config = self.opened = config
        self.first = 0

    def _id(self, growing: str, ring: str) -> str:
        return CLAUSES[ring]

    def key(self) -> tuple[int, int | None]:
        """The state up to renaming tokens and shifting positions: all offsets past a drop are alike."""
        return min(self.offset, self.sinks + self.recent + 1), self.queries

    def seen(self, position: int, of: int) -> bool:
        """Whether the cache itself shows the row at `position` to a query at `of`."""
        return position < self.sinks or of - position < self.recent

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

    def _width(self, n: int) -> int:
        """Rows in the history of an append of n: what its first query sees, and the others."""
        return min(self.offset, self.sinks + self.recent - 1) + n

    def view(self) -> list[int]:
        """What a next query would see beside itself."""
        cite("SINK-7")
        return [token for p, token in enumerate(self.tokens) if self.seen(p, self.offset)]

    def mask(self, logical: Logical) -> list[list[list[Scores]]]:
        """For each sequence, head and query of the last append, what it sees through a mask. Raises Refused."""
        if self.queries is None:
            raise common.no_history("MASK-1")
        arrays = masks.demand(logical, self.config.batch, self.queries, self.width)
        cite("SINK-21", *(["SINK-22"] if any(isinstance(part, Window) for part in logical) else []))
        sizes = self.config.batch, max([1, *(a.shape[1] for a in arrays)]), self.queries
        others = tuple(part for part in logical if not isinstance(part, Window))
        seen = masks.sees(others, sizes, [self.tokens[p] for p in self._history()], None)
        windows = [part.size for part in logical if isinstance(part, Window)]
        shown = [self._shown(of, windows) for of in range(self.offset - self.queries, self.offset)]
        return [[_through(queries, shown) for queries in heads] for heads in seen]

    def _history(self) -> list[int]:
        """The positions that some query of the last append sees."""
        return [p for p in range(self.offset) if p < self.sinks or p >= self.first]

    def _shown(self, of: int, windows: list[int]) -> set[int]:
        """The rows that the cache and these windows show to the query at a position, future ones too."""
        near = (p for p in self._history() if self.seen(p, of))
        return {self.tokens[p] for p in near if all(self.place(of) - self.place(p) < size for size in windows)}

    def positions(self) -> list[int]:
        """The positions of the rows that the last append's newest query sees."""
        if self.queries is None:
            raise Refused("SINK-20", "no history")
        cite("SINK-19" if self.config.shifted else "SINK-18", *(["SINK-20"] if self.queries == 0 else []))
        seen = [p for p in range(self.offset) if self.seen(p, self.offset - 1)] if self.queries else []
        return [self.place(p) for p in seen]

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
        target = self._clamped(to)
        if 0 <= target <= self.offset and not self._reaches(target, self.offset):
            raise Refused("SINK-12", "rows were dropped")
        unmoved = target == self.offset
        super().rewind(to)
        self.first = self.first if unmoved else 0

    def free(self) -> None:
        """Forget everything."""
        super().free()
        self.first = 0


def _through(queries: Sequence[Added], shown: Sequence[set[int]]) -> list[Scores]:
    """What each query sees: the rows that the mask shows, without those that the cache and its window hide."""
    return [{s: x for s, x in scores(q).items() if s in its} for q, its in zip(queries, shown, strict=True)]


model = SinkModel
