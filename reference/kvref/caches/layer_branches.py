"""Drafts of layers: rows that stand behind the offset, on several ways, until one way is kept.

They lie beside the rows of the layers, never among them. So nothing has to be undone, and a settle is one append.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from kvref.abilities.tree import NONE, Tree
from kvref.cite import cite
from kvref.memory.rows import Rows, joined
from kvspec.contract import Pair
from kvspec.geometry import Array, Config
from kvspec.refusals import layers as refusals_layers


class Drafts:
    """The drafts of all layers that appends give rows: `[layers, kv_heads, drafts, dim]`, each call's in memory of
    their own. `tree` has what they hang on."""

    def __init__(self, config: Config) -> None:
        self.config, self.tree = config, Tree()
        self.blocks: list[Rows] = []

    def __len__(self) -> int:
        return len(self.tree.on)

    @property
    def nbytes(self) -> int:
        """Bytes of their rows."""
        return sum(block.nbytes for block in self.blocks)

    def take(self, new: Pair, on: Sequence[int]) -> None:
        """More drafts, which hang on these."""
        block = Rows(self.config)
        block.join(new)
        self.blocks.append(block)
        self.tree.on += on

    def read(self, layer: int) -> Pair:
        """The rows of a layer, by the numbers of drafts."""
        each = (block.read(0, len(block)) for block in self.blocks)
        return Pair(*(np.concatenate([a[layer : layer + 1] for a in rows], 2) for rows in zip(*each, strict=True)))

    def chosen(self, numbers: Sequence[int]) -> Pair:
        """The rows of these drafts, in this order, to be written elsewhere."""
        places = [(block, slot) for block in self.blocks for slot in range(len(block))]
        return joined(*(block.part(slot, slot + 1) for block, slot in (places[i] for i in numbers)))

    def depths(self) -> list[int]:
        """How many drafts are on the way to each."""
        return self.tree.depths()


class BranchingLayers(ABC):
    """What a cache of layers does with drafts."""

    config: Config
    one: Config
    own: list[int]
    offset: int
    queries: int
    refused: str
    drafts: Drafts

    def _drop(self) -> None:
        """Have no drafts."""
        self.drafts = Drafts(self.one.changed(batch=max(1, len(self.own))))

    def lose_drafts(self) -> None:
        """Drop all drafts, if there are some, since another operation was done."""
        cite(*["LAYER-54"] * (len(self.drafts) > 0))
        self._drop()

    def branch(self, keys: Array, values: Array, on: Sequence[int] | None = None) -> None:
        """Take n rows `[layers, kv_heads, n, dim]` as drafts; `on` says for each which one it hangs on."""
        n = keys.shape[2] if keys.ndim == 4 else -1
        hung = self._hung(keys, values, n, on)
        cite("LAYER-48")
        if n:
            cite("LAYER-49", *[self.refused] * bool(self.refused))
            self.refused = ""
            self.drafts.take(Pair(keys, values), hung)
        self.queries = n

    def _hung(self, keys: Array, values: Array, n: int, on: Sequence[int] | None) -> Sequence[int]:
        """What the drafts hang on. Refused unless they fit, and hang on what is there."""
        if n != 0 and not self._fits(keys, values, n, len(self.own)):
            self.refused = "LAYER-53"
            raise refusals_layers.rows("CACHE-2", len(self.own), self.config.kv_heads, keys.shape)
        hung = self.drafts.tree.hung(n, on)
        if hung is None:
            self.refused = "LAYER-53"
            raise refusals_layers.hangs("LAYER-52", n, on or (), len(self.drafts))
        return hung

    @abstractmethod
    def _fits(self, keys: Array, values: Array, n: int, layers: int) -> bool:
        """Whether there are n keys and values for each of so many layers, at least one, in the cache's geometry."""

    def settle(self, draft: int) -> None:
        """Append the drafts on the way to one, and itself, or none; drop the others."""
        if not NONE <= draft < len(self.drafts):
            self.refused = "LAYER-53"
            raise refusals_layers.no_draft("LAYER-52", draft, len(self.drafts))
        way = [] if draft == NONE else self.drafts.tree.way(draft)
        cite(*["LAYER-51"] * (len(way) < len(self.drafts)), *["LAYER-50", "LAYER-56"] * bool(way))
        if way:
            self.extend(self.drafts.chosen(way), len(way))
        self._drop()
        self.queries = 0

    @abstractmethod
    def extend(self, new: Pair, n: int) -> None:
        """Put n rows of each layer behind the others, and drop what no query needs any more."""

    def positions(self) -> list[int]:
        """Where the queries of the last append or branch stand."""
        if len(self.drafts):
            return [self.offset + depth for depth in self.drafts.depths()[len(self.drafts) - self.queries :]]
        return list(range(self.offset - self.queries, self.offset))

    def seen_drafts(self) -> Array:
        """`[n, drafts]`: which drafts each query sees that no view hides."""
        return self.drafts.tree.seen(self.queries)
