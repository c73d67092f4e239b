"""Speculation in the list model: a layer is the list of the cache's tokens with the drafts behind it."""

from __future__ import annotations

from kvref.cite import cite
from kvref.list_model.caches import History
from kvspec.errors import Unsupported
from kvspec.refusals import common


class Layer(History):
    """A draft at position p sees what a row at p sees: `visible(p)`, of the tokens there were and the drafts."""

    def __init__(self, cache: History) -> None:
        super().__init__(cache.kind, cache.config, cache.claim)
        self.cache, self.start = cache, cache.offset
        self.tokens = list(cache.tokens)
        self.width = len(cache.view())

    @property
    def drafts(self) -> list[int]:
        """Those there are."""
        return self.tokens[self.start :]

    def append(self, serials: list[int]) -> None:
        """More drafts."""
        self.queries = len(serials)
        cite(*(["DRAFT-1", self._id("DRAFT-2", "DRAFT-3"), "DRAFT-9"] if serials else ["DRAFT-7"]))
        self.width += len(serials)
        self.tokens += serials


class Round:
    """The layers by the letters of their caches."""

    def __init__(self, caches: dict[str, History], isolated: bool, whole: bool) -> None:
        self.layers = {letter: Layer(cache) for letter, cache in caches.items()}
        self.isolated, self.over = isolated, ""
        cite("DRAFT-10", *([] if whole else ["DRAFT-17"]))
        self._hold(True)

    def _hold(self, held: bool) -> None:
        if self.isolated:
            return
        cite("DRAFT-11", "DRAFT-14")
        for layer in self.layers.values():
            layer.cache.in_round, layer.cache.queries = held, None

    def layer(self, letter: str, what: str) -> Layer:
        """The layer a cache stands for. Raises Unsupported where it is in none."""
        if letter not in self.layers:
            raise Unsupported(f"cache {letter} is in no layer of this round")
        self.demand_open(what)
        return self.layers[letter]

    def masked(self, letter: str) -> Layer:
        """The layer that a mask is asked for."""
        cite("DRAFT-6")
        return self.layer(letter, "mask")

    def demand_open(self, what: str) -> None:
        """Refuse what is asked of a round that has ended."""
        if self.over:
            raise common.round_over("DRAFT-24", what, self.over)

    def commit(self, n: int) -> None:
        """The caches' lists are longer by the first n drafts of their layers."""
        self.demand_open("commit")
        if self.isolated:
            raise common.isolated("DRAFT-28")
        kept = {letter: layer.drafts[: max(0, n)] for letter, layer in self.layers.items()}
        counts = [len(drafts) for drafts in kept.values()]
        if len(set(counts)) > 1:
            raise common.uneven("DRAFT-23", n, counts)
        self.end("committed")
        cite(*(["DRAFT-20"] if {n} != set(counts) else []), *(["DRAFT-21"] if not any(counts) else []))
        for letter, layer in self.layers.items():
            cite("DRAFT-18", "DRAFT-22", "DRAFT-25")
            layer.cache.append(kept[letter])
            layer.cache.queries = None

    def abandon(self) -> None:
        """Nothing is longer."""
        self.demand_open("abandon")
        cite("DRAFT-21", "DRAFT-22")
        self.end("abandoned")

    def end(self, how: str) -> None:
        """The caches are free again."""
        self.over = how
        self._hold(False)
