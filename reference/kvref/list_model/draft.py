"""Speculation in the list model: a layer is the list of the cache's tokens with the drafts behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvref.cite import cite
from kvref.list_model import masks, tree
from kvref.list_model.caches import CacheModel
from kvref.list_model.rows import Rows
from kvref.list_model.tokens import Scores, scores
from kvref.list_model.unsaid import Unsaid
from kvref.list_model.views import View
from kvspec.errors import Refused
from kvspec.masks import Logical
from kvspec.refusals import common


class DraftLayer(CacheModel):
    """A draft at position p sees what a row at p sees, of the cache's tokens and the drafts."""

    def __init__(self, cache: CacheModel) -> None:
        self.cache, self.kind = cache, cache.kind
        super().__init__(cache.config, cache.known, cache.claim)
        self.start, self.shaped = cache.offset, True
        self.tokens = list(cache.tokens)
        self.width = len(cache.view())
        self.hung: list[int] = []
        """For each draft the number of the one that it hangs on, -1 for none."""

    def _view(self) -> View:
        return self.cache.own_view

    @property
    def drafts(self) -> list[int]:
        """Those there are."""
        return self.tokens[self.start :]

    def demand_rows(self, keys: Rows, values: Rows) -> None:
        """Refuse drafts of another geometry."""
        try:
            super().demand_rows(keys, values)
        except Refused:
            raise Refused("DRAFT-8", "drafts of another geometry") from None

    def _demand_chunk(self, n: int) -> None:
        """Drafts are no append: RING-3 does not limit them."""

    def draft(self, keys: Rows, values: Rows, on: Sequence[int] | None) -> None:
        """More drafts; `on` says for each which one it hangs on."""
        if keys.n:
            self.demand_rows(keys, values)
        given = self._hangs(keys.n, on)
        self._write(keys, values)
        self.hung += given
        self.take(keys.serials[0])
        if keys.n and (on is not None or self.branched):
            cite("DRAFT-39" if on is None else "DRAFT-33")

    def _hangs(self, n: int, on: Sequence[int] | None) -> list[int]:
        """For each of n drafts the one that it hangs on, which must be there."""
        there = len(self.hung)
        given = tree.behind(there, n) if on is None else list(on)
        if not tree.proper(given, n, there):
            raise common.hangs("DRAFT-38", n, given, there)
        return given

    def _write(self, keys: Rows, values: Rows) -> None:
        """Drafts are no rows of the cache yet."""

    def take(self, serials: list[int]) -> None:
        """More drafts."""
        self.queries = len(serials)
        one_by_one = ["DRAFT-1", self.cache.drafted]
        branches = ["DRAFT-35" if self.config.window else "DRAFT-34"]
        cite(*([*(branches if self.branched else one_by_one), "DRAFT-9"] if serials else ["DRAFT-7"]))
        self.width += len(serials)
        self.tokens += serials

    def straight(self, n: int) -> bool:
        """Whether the first n drafts hang each on the one before it."""
        return all(other == number - 1 for number, other in enumerate(self.hung[:n]))

    @property
    def branched(self) -> bool:
        """Whether a draft hangs on another than the one before it."""
        return not self.straight(len(self.hung))

    def way(self, draft: int) -> list[int]:
        """The drafts on the way to one, and itself, by their numbers."""
        return tree.way(self.hung, draft)

    def stands(self, draft: int) -> int:
        """The position of a draft."""
        return self.start + len(self.way(draft)) - 1

    def mask(self, logical: Logical) -> list[list[list[Scores]]]:
        """What the last drafts see. With branches a draft sees what it would behind the drafts on its way alone."""
        if not self.branched or not self.queries:
            return super().mask(logical)
        arrays = masks.demand(logical, self.config.batch, self.queries, self.width)
        cite(*self._mask_clauses(logical), "DRAFT-37")
        shown = [self._shown(logical, draft) for draft in range(len(self.hung) - self.queries, len(self.hung))]
        heads, told = range(max([1, *(a.shape[1] for a in arrays)])), masks.explicit(logical)
        history = [*self.own_view.needs(self.start), *range(self.start, len(self.tokens))]
        return [
            [
                [scores(masks.through(told, (b, h, q), s, history, self.tokens)) for q, s in enumerate(shown)]
                for h in heads
            ]
            for b in range(self.config.batch)
        ]

    def _shown(self, logical: Logical, draft: int) -> list[int]:
        """The places in the list of the rows that a draft sees, without what arrays hide."""
        way, position = self.way(draft), self.stands(draft)
        seen = masks.without_arrays(logical, self.own_view.sees(position, position + 1), position)
        return [p if p < self.start else self.start + way[p - self.start] for p in seen]


class RowsLayer(DraftLayer):
    """A layer of an engine without rounds: drafts are rows that its cache appends, by the cache's own rules."""

    def demand_rows(self, keys: Rows, values: Rows) -> None:
        """What is refused is for the cache to say."""

    def _write(self, keys: Rows, values: Rows) -> None:
        """The cache appends them; the first rows may fix its geometry."""
        try:
            with self.cache.drafting():
                self.cache.append(keys, values)
        except Refused as e:
            raise Refused("DRAFT-8" if e.clause == "CACHE-2" else e.clause, str(e)) from None
        self.config = self.cache.config


class RoundModel:
    """A round over caches, None for a layer that has none; `layers` by their numbers. With `rows` the engine knows
    of no rounds."""

    def __init__(self, caches: Sequence[Any], isolated: bool, rows: bool = False) -> None:
        if rows and isolated:
            raise Unsaid("any")
        for i, cache in enumerate(caches):
            if cache is not None:
                _demand(cache, i, next(j for j, other in enumerate(caches) if other is cache))
        layer = RowsLayer if rows else DraftLayer
        self.layers = {i: layer(cache) for i, cache in enumerate(caches) if cache is not None}
        self.isolated, self.rows, self.over = isolated, rows, ""
        cite("DRAFT-10", *([] if len(self.layers) == len(caches) else ["DRAFT-17"]))
        self._hold(True)

    def _hold(self, held: bool) -> None:
        if self.isolated:
            return
        cite(*(("DRAFT-10",) if self.rows else ("DRAFT-11", "DRAFT-14")))
        for layer in self.layers.values():
            layer.cache.in_round, layer.cache.queries = held, None
            layer.cache.unaware = held and self.rows

    def draft(self, layer: int, keys: Rows, values: Rows, on: Sequence[int] | None = None) -> None:
        """More drafts on a layer; `on` says for each which one it hangs on."""
        self._demand_open("draft")
        self.layers[layer].draft(keys, values, on)
        cite(*(("DRAFT-26", "DRAFT-27") if self.isolated else ("DRAFT-11",) if not self.rows else ()))

    def mask(self, layer: int, logical: Logical) -> list[list[list[Scores]]]:
        """What the queries of the last drafts of a layer see."""
        cite("DRAFT-6")
        self._demand_open("mask")
        return self.layers[layer].mask(logical)

    def offset(self, layer: int) -> int:
        """The position behind the last draft of a layer."""
        found = self.layers[layer]
        return found.stands(len(found.hung) - 1) + 1 if found.hung else found.start

    def positions(self, layer: int) -> list[int]:
        """The positions of the last drafts of a layer."""
        found = self.layers[layer]
        return [found.stands(draft) for draft in range(len(found.hung) - (found.queries or 0), len(found.hung))]

    def _demand_open(self, what: str, clause: str = "DRAFT-24") -> None:
        """Refuse what is asked of a round that has ended."""
        if self.over and self.rows:
            raise Unsaid("any", kept=True)
        if self.over:
            raise common.round_over(clause, what, self.over)

    def commit(self, n: int) -> None:
        """The caches' lists are longer by the first n drafts of their layers."""
        self._demand_open("commit")
        if self.isolated:
            raise common.isolated("DRAFT-28")
        kept = {i: layer.drafts[: max(0, n)] for i, layer in self.layers.items()}
        counts = [len(drafts) for drafts in kept.values()]
        if self.rows and len(set(counts)) > 1:
            raise Unsaid("any", kept=True)
        if len(set(counts)) > 1:
            raise common.uneven("DRAFT-23", n, counts)
        if not all(layer.straight(len(kept[i])) for i, layer in self.layers.items()):
            raise common.branches("DRAFT-45", n)
        self._end("committed")
        cite(*(["DRAFT-20"] if {n} != set(counts) and not self.rows else []))
        cite(*(["DRAFT-21"] if not any(counts) else []))
        for i, layer in self.layers.items():
            cite("DRAFT-18", "DRAFT-22", "DRAFT-25")
            self._keep(layer, kept[i])

    def choose(self, draft: int) -> None:
        """The caches' lists are longer by the drafts on the way to one."""
        self._demand_open("choose", "DRAFT-46")
        if self.isolated:
            raise common.isolated("DRAFT-46")
        for layer in self.layers.values():
            if self.rows and not 0 <= draft < len(layer.hung):
                raise Unsaid("any", kept=True)
            if not 0 <= draft < len(layer.hung):
                raise common.no_draft("DRAFT-43", draft, len(layer.hung))
        if len({tuple(layer.way(draft)) for layer in self.layers.values()}) > 1:
            raise common.ways("DRAFT-44", draft)
        self._end("chosen")
        cite("DRAFT-46")
        for layer in self.layers.values():
            cite("DRAFT-40", "DRAFT-42")
            self._keep(layer, [layer.drafts[i] for i in layer.way(draft)])

    def abandon(self) -> None:
        """Nothing is longer."""
        self._demand_open("abandon")
        cite("DRAFT-21", "DRAFT-22")
        self._end("abandoned")
        for layer in self.layers.values() if self.rows else ():
            self._keep(layer, [])

    def _keep(self, layer: DraftLayer, drafts: list[int]) -> None:
        """A cache has these drafts and no others. None of them is the newest append's."""
        if self.rows:
            layer.cache.keep_drafts(layer.start, drafts)
        else:
            layer.cache.take_drafts(drafts)
        layer.cache.queries = None

    def _end(self, how: str) -> None:
        """The caches are free again."""
        self.over = how
        self._hold(False)


def _demand(cache: Any, layer: int, first: int) -> None:
    if not isinstance(cache, CacheModel):
        raise common.cannot_speculate("DRAFT-16", layer, cache.kind)
    if first != layer:
        raise common.twice("DRAFT-15", first, layer)
    if cache.in_round:
        raise common.in_round("DRAFT-15", "speculate")
