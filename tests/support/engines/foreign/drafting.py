"""DRAFT by deep copies: a round copies its caches, drafts into the copies, and puts what is kept into the caches.

Written from the text of the chapters GROW and DRAFT alone. A cache is a list of rows. There are no masks and no
rings.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from kvspec.contract import Lengths, Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES
from support.engines.foreign.demands import want, want_rows, want_sizes


class Rows:
    """A growing cache: keys `[B, heads, k_dim]` and values of each position."""

    def __init__(self, config: Any) -> None:
        want_sizes(config, "step")
        self.config, self.rows, self.written = config, list[tuple[Any, Any]](), False
        self.queried: list[tuple[Any, Any]] | None = None
        self.round: Round | None = None

    def free_to_use(self) -> None:
        """Refuse what is done while drafts are open."""
        want(self.round is None, "the cache is in an open round")

    def append(self, keys: Any, values: Any) -> None:
        """Add rows."""
        if keys.shape[2] == 0:
            if self.round is None:
                self.queried = list(self.rows)
            return
        self.free_to_use()
        self.add(keys, values)
        self.queried = list(self.rows)

    def add(self, keys: Any, values: Any) -> None:
        """Add rows, in a round or not."""
        want_rows(self.config, keys, values, self.config.batch)
        self.written = True
        for i in range(keys.shape[2]):
            self.rows.append((keys[:, :, i].copy(), values[:, :, i].copy()))

    def read(self, what: str) -> Pair | None:
        """The rows that the last queries see, or all."""
        self.free_to_use()
        if what == "history":
            return stacked(self.config, self.queried or [])
        return stacked(self.config, self.rows) if self.written else None

    def lengths(self) -> Lengths:
        """How many rows there are."""
        return Lengths(len(self.rows), len(self.rows))

    def can_rewind(self, to: int) -> bool:
        """Whether a rewind would be taken."""
        return self.round is None and 0 <= to <= len(self.rows)

    def rewind(self, to: int) -> None:
        """Drop rows."""
        want(self.can_rewind(to), f"rewind to {to}")
        del self.rows[to:]
        self.queried = None

    def free(self) -> None:
        """Drop all rows."""
        self.free_to_use()
        self.rows, self.queried, self.written = [], None, False


def stacked(config: Any, rows: Sequence[tuple[Any, Any]]) -> Pair:
    """Rows as arrays `[B, heads, n, dim]`."""
    if rows:
        return Pair(*(np.stack(side, 2) for side in zip(*rows, strict=True)))
    return Pair(*(np.zeros(config.shape(what, 0), DTYPES[config.dtype]) for what in "kv"))


class Round:
    """A round over copies of caches."""

    def __init__(self, caches: Sequence[Rows | None], isolated: bool) -> None:
        there = [cache for cache in caches if cache is not None]
        want(
            all(isinstance(cache, Rows) and cache.round is None for cache in there), "not a cache outside of rounds"
        )
        want(len({id(cache) for cache in there}) == len(there), "a cache for two layers")
        self.caches, self.isolated, self.open = list(caches), isolated, True
        self.copies = [copy.deepcopy(cache) for cache in caches]
        self.begun = [0 if c is None else len(c.rows) for c in caches]
        self.asked = [False] * len(self.copies)
        for cache in there if not isolated else ():
            cache.round, cache.queried = self, None

    def there(self, layer: int) -> Rows:
        """The copy of a layer of an open round."""
        want(self.open, "the round has ended")
        found = self.copies[layer] if 0 <= layer < len(self.copies) else None
        if found is None:
            raise ValueError(f"layer {layer} has no cache")
        return found

    def draft(self, layer: int, keys: Any, values: Any) -> None:
        """Add drafts to a copy."""
        cache = self.there(layer)
        if keys.shape[2]:
            cache.add(keys, values)
        self.asked[layer] = True

    def read(self, layer: int) -> Pair:
        """All rows of a copy: each draft sees those before it."""
        cache = self.there(layer)
        return stacked(cache.config, cache.rows)

    def offset(self, layer: int) -> int:
        """The position behind the last draft."""
        return len(self.there(layer).rows)

    def commit(self, n: int) -> None:
        """Move the first drafts to the caches."""
        want(self.open and not self.isolated, "not open, or isolated")
        drafts = [[] if c is None else c.rows[b:] for c, b in zip(self.copies, self.begun, strict=True)]
        counts = {min(max(0, n), len(d)) for d, c in zip(drafts, self.copies, strict=True) if c is not None}
        want(len(counts) < 2, "layers would keep different numbers")
        for cache, kept in zip(self.caches, drafts, strict=True):
            if cache is not None:
                cache.rows += kept[: max(0, n)]
                cache.written = cache.written or n > 0 < len(kept)
        self.end()

    def abandon(self) -> None:
        """Drop all drafts."""
        want(self.open, "the round has ended")
        self.end()

    def end(self) -> None:
        """Let the caches go."""
        self.open = False
        for cache in self.caches:
            if cache is not None and cache.round is self:
                cache.round = None


class DeepCopies:
    """The adapter."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        return {"name": "deep-copies", "chapters": {"growing": "visible", "draft": "visible"}}

    def open(self, kind: str, config: Any) -> Rows:
        """A fresh cache."""
        if kind != "growing":
            raise Unsupported(f"no kind {kind}")
        return Rows(config)

    def speculate(self, caches: Sequence[Rows | None], isolated: bool) -> Round:
        """A round over caches."""
        return Round(caches, isolated)
