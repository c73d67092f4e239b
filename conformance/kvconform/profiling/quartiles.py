"""Medians with their spread, which here is always the quartiles: half of all rounds lie between them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles

from kvspec.records.profile import Spread


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles of one value or more; between two values of the sorted list, the line between them."""
    if len(values) == 1:
        return Spread(median=values[0], low=values[0], high=values[0])
    low, median, high = quantiles(values, n=4, method="inclusive")
    return Spread(median=median, low=low, high=high)


def scaled(values: Sequence[float], by: float) -> Spread:
    """The same of all values times something."""
    return spread([v * by for v in values])


def ratios(over: Sequence[float], under: Sequence[float]) -> Spread:
    """Of what was measured in the same rounds: a ratio for each round, then their median and quartiles."""
    return spread([a / b for a, b in zip(over, under, strict=True)])
