"""Counts the rows of each id that a query saw. If it saw n rows, the weights of its seen heads are multiples of
1/n."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kvadapters.probe.arrays import Float64

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Counts:
    """How many rows a query saw: in all, and bounds for each id, int [ids]. `others` are the further totals that
    fit."""

    total: int
    low: Numbers
    high: Numbers
    others: tuple[int, ...]

    @property
    def told(self) -> bool:
        """Whether exactly one count of each id fits."""
        return bool((self.low == self.high).all())


def counted(low: Float64, high: Float64, likely: Numbers, most: int) -> Counts | None:
    """Count rows by bounds of their weights, float64 [ids], which sum to 1. The total that fits and comes nearest
    to the `likely` counts is taken; `most` is the largest that is tried. None if no total fits: then rows do not
    weigh the same."""
    possible = high * most >= 1 - 1e-9
    part = _counted(low[possible], high[possible], likely[possible], most)
    if part is None or (low[~possible] > 1e-9).any():
        return None
    least, largest = np.zeros_like(likely), np.zeros_like(likely)
    least[possible], largest[possible] = part.low, part.high
    return replace(part, low=least, high=largest)


def _counted(low: Float64, high: Float64, likely: Numbers, most: int) -> Counts | None:
    """Count rows of those ids of which there may be one."""
    totals = np.arange(1, most + 1)[:, None]
    best_known = np.argsort(high - low)[:1]  # leaves few totals, so that the others take less time
    least, largest = _between(low[best_known], high[best_known], totals)
    totals = totals[(least <= largest).all(1)]
    least, largest = _between(low, high, totals)
    most_of_one = totals - (least.sum(1, keepdims=True) - least)  # the others have their least at least
    largest = np.minimum(largest, most_of_one)
    fitting = np.flatnonzero((least <= largest).all(1) & (largest.sum(1) >= totals[:, 0]))
    if not len(fitting):
        return None
    changes = np.maximum(least - likely, 0).sum(1) + np.maximum(likely - largest, 0).sum(1)
    best = fitting[changes[fitting].argmin()]
    others = tuple(int(t) for t in totals[fitting, 0] if t != totals[best, 0])
    return Counts(int(totals[best, 0]), least[best], largest[best], others)


def _between(low: Float64, high: Float64, totals: Numbers) -> tuple[Numbers, Numbers]:
    """Give the least and the largest number of rows of each id, [totals, ids], by bounds of its weight."""
    least, largest = np.ceil(np.maximum(low, 0) * totals - 1e-9), np.floor(high * totals + 1e-9)
    return least.astype(np.int64), largest.astype(np.int64)
