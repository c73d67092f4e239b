"""Speculation in the list model: a layer is the list of the cache's tokens with the drafts behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvref.cite import cite
from kvref.list_model.caches import CacheModel, Scores
from kvref.list_model.rows import Rows
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

    def take(self, serials: list[int]) -> None:
        """More drafts."""
        self.queries = len(serials)
        cite(*(["DRAFT-1", self.cache.drafted, "DRAFT-9"] if serials else ["DRAFT-7"]))
        self.width += len(serials)
        self.tokens += serials


class RoundModel:
    """A round over caches, None for a layer that has none; `layers` by their numbers."""

    def __init__(self, caches: Sequence[Any], isolated: bool) -> None:
        for i, cache in enumerate(caches):
            if cache is not None:
                _demand(cache, i, next(j for j, other in enumerate(caches) if other is cache))
        self.layers = {i: DraftLayer(cache) for i, cache in enumerate(caches) if cache is not None}
        self.isolated, self.over = isolated, ""
        cite("DRAFT-10", *([] if len(self.layers) == len(caches) else ["DRAFT-17"]))
        self._hold(True)

    def _hold(self, held: bool) -> None:
        if self.isolated:
            return
        cite("DRAFT-11", "DRAFT-14")
        for layer in self.layers.values():
            layer.cache.in_round, layer.cache.queries = held, None

    def draft(self, layer: int, keys: Rows, values: Rows) -> None:
        """More drafts on a layer."""
        self._demand_open("draft")
        self.layers[layer].append(keys, values)
        cite(*(("DRAFT-26", "DRAFT-27") if self.isolated else ("DRAFT-11",)))

    def mask(self, layer: int, logical: Logical) -> list[list[list[Scores]]]:
        """What the queries of the last drafts of a layer see."""
        cite("DRAFT-6")
        self._demand_open("mask")
        return self.layers[layer].mask(logical)

    def offset(self, layer: int) -> int:
        """The position behind the last draft of a layer."""
        return self.layers[layer].offset

    def _demand_open(self, what: str) -> None:
        """Refuse what is asked of a round that has ended."""
        if self.over:
            raise common.round_over("DRAFT-24", what, self.over)

    def commit(self, n: int) -> None:
        """The caches' lists are longer by the first n drafts of their layers."""
        self._demand_open("commit")
        if self.isolated:
            raise common.isolated("DRAFT-28")
        kept = {i: layer.drafts[: max(0, n)] for i, layer in self.layers.items()}
        counts = [len(drafts) for drafts in kept.values()]
        if len(set(counts)) > 1:
            raise common.uneven("DRAFT-23", n, counts)
        self._end("committed")
        cite(*(["DRAFT-20"] if {n} != set(counts) else []), *(["DRAFT-21"] if not any(counts) else []))
        for i, layer in self.layers.items():
            cite("DRAFT-18", "DRAFT-22", "DRAFT-25")
            layer.cache.keep(kept[i])
            layer.cache.queries = None

    def abandon(self) -> None:
        """Nothing is longer."""
        self._demand_open("abandon")
        cite("DRAFT-21", "DRAFT-22")
        self._end("abandoned")

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
