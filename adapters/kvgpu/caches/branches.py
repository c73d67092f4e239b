"""Branches of drafts on a device: which hangs on which. Rows stay where they came; a choice moves them together.

The host keeps the parents. A mask is made there, one line of bits for each draft: the bits of the one it hangs on,
and its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvgpu.memory.cache_rows import Slots
from kvgpu.memory.layout import Span
from kvspec.geometry import Array
from kvspec.refusals import common as refusals


class Branches:
    """The drafts of one layer, by their numbers."""

    def __init__(self) -> None:
        self.bits = list[int]()
        """For each draft a bit for every draft that it sees."""
        self.chain = 0
        """How many of the first hang each on the one before it."""

    def parents(self, n: int, on: Sequence[int] | None) -> Sequence[int]:
        """Give what n new drafts hang on. Raises Refused if one is to hang on what is not there before it."""
        found = self.hung(n, on)
        if found is None:
            raise refusals.hangs("DRAFT-38", n, on or (), len(self.bits))
        return found

    def hung(self, n: int, on: Sequence[int] | None) -> Sequence[int] | None:
        """Give the same; None if one is to hang on what is not there before it."""
        there = len(self.bits)
        if on is None:
            return range(there - 1, there + n - 1)
        wrong = len(on) != n or any(p < -1 or p - there >= i for i, p in enumerate(on))
        return None if wrong else on

    def hang(self, parents: Sequence[int]) -> None:
        """Add drafts that hang on these."""
        for number, parent in enumerate(parents, len(self.bits)):
            self.chain += self.chain == number and parent == number - 1
            self.bits.append((self.bits[parent] if parent >= 0 else 0) | 1 << number)

    @property
    def branched(self) -> bool:
        """Tell whether a draft hangs on another than the one before it."""
        return self.chain < len(self.bits)

    def depth(self, number: int) -> int:
        """Count the drafts on the way to one, and itself."""
        return self.bits[number].bit_count()

    def way(self, number: int) -> list[int]:
        """Give the drafts on the way to one, and itself."""
        return [i for i in range(number + 1) if self.bits[number] >> i & 1]

    def shown(self, queries: int, seen: int, window: int | None) -> Array:
        """Give, as `[queries, rows]`, which of the live rows and of the drafts the newest drafts see."""
        ages = self.ages(queries, seen)
        drafts = [[bits >> i & 1 for i in range(len(self.bits))] for bits in self.bits[len(self.bits) - queries :]]
        shown = np.concatenate([np.ones((queries, seen), bool), np.array(drafts, bool)], axis=1)
        return shown if window is None else shown & (ages < window)

    def ages(self, queries: int, seen: int) -> Array:
        """Count, as `[queries, rows]`, the positions from each row up to each of the newest drafts."""
        stands = np.array([*range(1 - seen, 1), *map(self.depth, range(len(self.bits)))])
        return np.asarray(stands[len(stands) - queries :, None] - stands)


def together(store: Slots, first: int, way: Sequence[int]) -> None:
    """Move these drafts, which lie from a slot on in the order of their numbers, behind each other from there on.

    Each goes to a slot before its own, past those that moved already: rows that a move reads are never ones that
    it writes.
    """
    assert store.rows is not None
    place, done = store.rows.place, 0
    while done < len(way):
        back = way[done] - done
        run = 1
        while done + run < len(way) and way[done + run] == way[done] + run and (run < back or back == 0):
            run += 1
        if back:
            source = Span(place, first + way[done], 0, run)
            store.move(run, source, Span(place, first + done, 0, run))
        done += run
