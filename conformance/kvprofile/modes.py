"""Two modes: whether the times of a case fall into two groups, of which no median tells."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from kvspec.records.profile import Mode

FEWEST = 3
"""Rounds of the smaller group. Two slow ones are other work that came by."""

APART = 1.3
"""How much longer the shortest time of the slow group is than the longest of the fast one, at least."""


def modes(milliseconds: Sequence[float]) -> list[Mode]:
    """Give the two groups of times, the fast one first; none where the times are one group.

    They are cut where two neighbours differ by the largest factor. That gap must be wider than either group: so a
    tail of ever longer times is no second mode.
    """
    times = sorted(milliseconds)
    cuts = range(FEWEST, len(times) - FEWEST + 1)
    if not cuts:
        return []
    cut = max(cuts, key=lambda i: times[i] / times[i - 1])
    fast, slow, gap = times[:cut], times[cut:], times[cut] / times[cut - 1]
    if gap < max(APART, fast[-1] / fast[0], slow[-1] / slow[0]):
        return []
    return [Mode(ms=median(group), rounds=len(group)) for group in (fast, slow)]
