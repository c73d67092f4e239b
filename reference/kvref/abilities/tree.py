"""What the drafts of a layer hang on: each on an earlier one, or on none of them.

Without branches each hangs on the one before it. With branches a draft stands as many positions behind the first as
there are drafts on the way to it, whatever its number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvspec.geometry import Array
from kvspec.refusals import common as refusals

NONE = -1
"""Stands for the draft that the first ones hang on: the newest row of the cache."""


class Tree:
    """The drafts of a layer by their numbers; `on` says for each which one it hangs on."""

    def __init__(self) -> None:
        self.on: list[int] = []

    def hang(self, n: int, on: Sequence[int] | None) -> None:
        """Add n drafts, each on the one before it where nothing else is said. Refuses what is not there."""
        first, given = len(self.on), self.hung(n, on)
        if given is None:
            raise refusals.hangs("DRAFT-38", n, on or (), first)
        self.on += given

    def hung(self, n: int, on: Sequence[int] | None) -> Sequence[int] | None:
        """What n more drafts hang on, each on the one before it where nothing else is said; None if one is to hang
        on what is not there."""
        first = len(self.on)
        given = range(first - 1, first + n - 1) if on is None else on
        earlier = (NONE <= other < first + i for i, other in enumerate(given))
        return given if len(given) == n and all(earlier) else None

    def straight(self, n: int) -> bool:
        """Whether the first n drafts hang each on the one before it."""
        return self.on[:n] == list(range(NONE, n - 1))

    @property
    def branched(self) -> bool:
        """Whether a draft hangs on another than the one before it."""
        return not self.straight(len(self.on))

    def way(self, draft: int) -> list[int]:
        """The drafts on the way to one, and itself."""
        way = [draft]
        while (before := self.on[way[-1]]) != NONE:
            way.append(before)
        return way[::-1]

    def depths(self) -> list[int]:
        """How many drafts are on the way to each."""
        depths = list[int]()
        for other in self.on:
            depths.append(0 if other == NONE else depths[other] + 1)
        return depths

    def seen(self, queries: int) -> Array:
        """`[queries, drafts]`: which drafts the newest ones see, themselves included."""
        seen = np.zeros((queries, len(self.on)), bool)
        for i in range(queries):
            seen[i, self.way(len(self.on) - queries + i)] = True
        return seen
