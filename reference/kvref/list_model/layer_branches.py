"""Drafts of layers in the list model: a list of tokens beside those of the cache, each with the one it hangs on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from kvref.cite import cite
from kvref.list_model import tree
from kvref.list_model.rows import Rows
from kvref.list_model.views import Conv, State, View
from kvspec.contract import Claim
from kvspec.refusals import layers as refusals_layers


class BranchingLayers(ABC):
    """`drafts` are tokens, and `hung` says for each which one it hangs on, -1 for none."""

    claim: Claim
    own: list[int]
    views: list[View]
    tokens: list[tuple[int, ...]]
    queries: int
    refused: str

    def _drop(self) -> None:
        """Have no drafts."""
        self.drafts: list[tuple[int, ...]] = []
        self.hung: list[int] = []

    def lose_drafts(self) -> None:
        """Drop all drafts, if there are some, since another operation was done."""
        cite(*["LAYER-54"] * bool(self.drafts))
        self._drop()

    @abstractmethod
    def demand_rows(self, keys: Rows, values: Rows, layers: int, unchanged: str) -> None:
        """Refuse rows of another geometry, or of other layers than so many."""

    @abstractmethod
    def extend(self, new: Sequence[tuple[int, ...]]) -> None:
        """Have more tokens."""

    def branch(self, keys: Rows, values: Rows, on: Sequence[int] | None = None) -> None:
        """More drafts."""
        if keys.n:
            self.demand_rows(keys, values, len(self.own), "LAYER-53")
        given = self._hung(keys.n, on)
        cite("LAYER-48")
        if keys.n:
            cite("LAYER-49", *[self.refused] * bool(self.refused))
            self.refused = ""
            self.fix_shape(keys, values)
            self.hung += given
            self.drafts += zip(*keys.serials, strict=True)
        self.queries = keys.n

    @abstractmethod
    def fix_shape(self, keys: Rows, values: Rows) -> None:
        """Have the geometry of these rows, where the first ones fix it."""

    def _hung(self, n: int, on: Sequence[int] | None) -> list[int]:
        """What new drafts hang on. Raises Refused."""
        there = len(self.hung)
        given = tree.behind(there, n) if on is None else list(on)
        if not tree.proper(given, n, there):
            self.refused = "LAYER-53"
            raise refusals_layers.hangs("LAYER-52", n, given, there)
        if self._one_way and given != tree.behind(there, n):
            self.refused = "LAYER-53"
            raise refusals_layers.one_way("LAYER-54", there)
        return given

    @property
    def _one_way(self) -> bool:
        """Whether there is room for one way on alone."""
        return self.claim.dialect("ways") == "one" and any(isinstance(view, State | Conv) for view in self.views)

    def way(self, draft: int) -> list[int]:
        """The drafts on the way to one, and itself, by their numbers; none to -1."""
        return tree.way(self.hung, draft)

    def settle(self, draft: int) -> None:
        """The list is longer by the drafts on the way to one."""
        if not -1 <= draft < len(self.hung):
            self.refused = "LAYER-53"
            raise refusals_layers.no_draft("LAYER-52", draft, len(self.hung))
        way = self.way(draft)
        cite(*["LAYER-51"] * (len(way) < len(self.hung)), *["LAYER-50", "LAYER-56"] * bool(way))
        self.extend([self.drafts[i] for i in way])
        self._drop()
        self.queries = 0

    def asked(self) -> list[tuple[int, list[tuple[int, ...]]]]:
        """For each query of the last append or branch its position, and the tokens up to it."""
        if not self.hung:
            return [(p, self.tokens) for p in range(len(self.tokens) - self.queries, len(self.tokens))]
        ways = map(self.way, range(len(self.hung) - self.queries, len(self.hung)))
        return [(len(self.tokens) + len(way) - 1, [*self.tokens, *(self.drafts[i] for i in way)]) for way in ways]
