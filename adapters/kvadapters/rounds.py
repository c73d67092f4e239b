"""Rounds of drafts for engines that have none: drafts are rows that a cache appends, and a commit drops others.

Where a round began, which caches are in it, and whether it has ended is known here alone. That is the caller's
part: see the dialect `rounds`. A cache has the methods of `Cache`, and these two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import Array
from kvspec.masks import Logical


class Drafting(Protocol):
    """What a cache offers to rounds of rows."""

    drafting: bool
    """Whether it is in one. This is written here alone."""

    def begin_round(self) -> None:
        """Keep from now on what is needed to drop rows."""

    def end_round(self, drop: int) -> None:
        """Drop the newest rows; from now on none need be dropped."""


class Layer:
    """A cache in a round, and how many drafts it appended."""

    def __init__(self, cache: Drafting) -> None:
        self.cache: Any = cache
        self.drafts = 0
        cache.begin_round()
        cache.drafting = True

    def end(self, keep: int) -> None:
        """Keep the first drafts."""
        self.cache.drafting = False
        self.cache.end_round(self.drafts - keep)


class RowsRound:
    """A round over caches, None for a layer without one."""

    def __init__(self, caches: Sequence[Any], isolated: bool) -> None:
        there = [cache for cache in caches if cache is not None]
        if isolated:
            raise Unsupported("no isolated rounds")
        if len({id(cache) for cache in there}) < len(there):
            raise ValueError("a cache for two layers")
        if any(cache.drafting for cache in there):
            raise ValueError("a cache is in another round")
        self.layers = {i: Layer(cache) for i, cache in enumerate(caches) if cache is not None}
        self.open = True

    def _demand_open(self) -> None:
        if not self.open:
            raise ValueError("the round has ended")

    def draft(self, layer: int, keys: Any, values: Any) -> None:
        """Append rows."""
        self._demand_open()
        self.layers[layer].cache.append(keys, values)
        self.layers[layer].drafts += keys.shape[2]

    def read(self, layer: int) -> Pair | None:
        """The history of the latest rows."""
        found: Pair | None = self.layers[layer].cache.read("history")
        return found

    def mask(self, layer: int, logical: Logical) -> Array | None:
        """The mask of the latest rows."""
        self._demand_open()
        found: Array | None = self.layers[layer].cache.mask(logical)
        return found

    def offset(self, layer: int) -> int:
        """The length of the cache, which counts drafts."""
        return int(self.layers[layer].cache.lengths().offset)

    def commit(self, n: int) -> None:
        """Drop all drafts but the first n; none, where that keeps more on one layer than on another."""
        self._demand_open()
        kept = {i: min(max(0, n), layer.drafts) for i, layer in self.layers.items()}
        if len(set(kept.values())) > 1:
            raise ValueError(f"layers would keep {sorted(kept.values())} drafts")
        self.open = False
        for i, layer in self.layers.items():
            layer.end(kept[i])

    def choose(self, draft: int) -> None:
        """Keep the drafts up to one: each hangs on the one before it."""
        self._demand_open()
        if not all(0 <= draft < layer.drafts for layer in self.layers.values()):
            raise ValueError(f"no draft {draft}")
        self.commit(draft + 1)

    def abandon(self) -> None:
        """Drop all drafts."""
        self._demand_open()
        self.open = False
        for layer in self.layers.values():
            layer.end(0)
