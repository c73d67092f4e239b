"""What queries see otherwise in a cache of one layer."""

from __future__ import annotations

from kvref.list_model.caches import CacheModel
from kvref.list_model.masks import ALL
from kvref.list_model.ring import RingModel
from kvref.list_model.sink import SinkModel
from kvref.list_model.tokens import Scores
from kvref.list_model.unsaid import Unsaid
from kvref.list_model.views import View
from kvspec.masks import Logical


class KeptRowsHidden(SinkModel):
    """mlx-lm: the mask for several rows is that of a window over all columns, the kept ones too."""

    def mask(self, logical: Logical) -> list[list[list[Scores]]]:
        sees = super().mask(logical)
        n, size = self.queries or 0, self.config.window or 0
        if n < 2:
            return sees
        first = self.offset - n
        recent = max(0, min(size - 1, first) - self.sinks)
        columns = self.tokens[: min(first, self.sinks)] + self.tokens[first - recent :]
        old = len(columns) - n
        shown = [dict.fromkeys(columns[max(0, old + i + 1 - size) : old + i + 1], 0.0) for i in range(n)]
        return [[list(shown) for _ in heads] for heads in sees]


class WindowOfOne(RingModel):
    """transformers: with a window of one a layer never drops a row, but in a crop that ends a round, and masks are
    too narrow for several."""

    cropped = False

    def take(self, serials: list[int]) -> None:
        if self.config.window == 1 and ((len(serials) > 1 and self.offset) or self.cropped):
            raise Unsaid
        super().take(serials)

    def keep_drafts(self, start: int, drafts: list[int]) -> None:
        self.cropped = self.cropped or len(self.tokens) > start + len(drafts)
        super().keep_drafts(start, drafts)

    def visible(self) -> View:
        return ALL if self.config.window == 1 and self.queries == 1 else super().visible()

    def _kept(self, held: list[int]) -> list[int]:
        return held if self.config.window == 1 else super()._kept(held)


class WritesByPosition(CacheModel):
    """litgpt: a chunk is written into its slots before its first queries have seen what was there, and each query
    sees the slots up to its own position."""

    def mask(self, logical: Logical) -> list[list[list[Scores]]]:
        sees, size = super().mask(logical), self.config.window or 0
        slots = {p % size: token for p, token in enumerate(self.tokens)} if size else {}
        first = self.offset - (self.queries or 0)
        shown = [{t: 0.0 for s, t in slots.items() if s <= first + i} for i in range(self.queries or 0)]
        return [[list(shown) for _ in heads] for heads in sees]


class ChunkWritesOver(CacheModel):
    """executorch: a ring of 2 W slots takes 2 W rows at once, over rows that its first queries need."""

    def mask(self, logical: Logical) -> list[list[list[Scores]]]:
        sees = super().mask(logical)
        there = set(self.tokens[max(0, self.offset - 2 * (self.config.window or 0)) :])
        return [[[{s: x for s, x in q.items() if s in there} for q in qs] for qs in heads] for heads in sees]


class SinkChunkWritesOver(SinkModel):
    """executorch: beside the sinks a ring of 2 R slots takes 2 R rows at once, over rows that its first queries
    need, and raises for more."""

    def take(self, serials: list[int]) -> None:
        if len(serials) - max(0, self.sinks - self.offset) > 2 * self.recent:
            raise Unsaid("error", kept=True)
        super().take(serials)

    def mask(self, logical: Logical) -> list[list[list[Scores]]]:
        sees = super().mask(logical)
        there = {*self.tokens[: self.sinks], *self.tokens[max(0, self.offset - 2 * self.recent) :]}
        return [[[{s: x for s, x in q.items() if s in there} for q in qs] for qs in heads] for heads in sees]
