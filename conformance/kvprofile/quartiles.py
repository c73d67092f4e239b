"""Medians with their spread: always the quartiles, between which half of all rounds lie."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles

from kvspec.records.profile import Spread


def spread(values: Sequence[float]) -> Spread:
    """Compute median and quartiles of one or more values, with linear interpolation between sorted values."""
    if len(values) == 1:
        return Spread(median=values[0], low=values[0], high=values[0])
    low, median, high = quantiles(values, n=4, method="inclusive")
    return Spread(median=median, low=low, high=high)


def scaled(values: Sequence[float], by: float) -> Spread:
    """Scale median and quartiles."""
    return spread([v * by for v in values])


def ratios(over: Sequence[float], under: Sequence[float]) -> Spread:
    """Compute the ratio in each common round, then the median and quartiles of the ratios."""
    return spread([a / b for a, b in zip(over, under, strict=True)])
