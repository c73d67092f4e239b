"""Hypothesis as a source of traces only: they are judged later, and `generate.shrink` makes failures short."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

_QUIET = settings(
    max_examples=2, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


def some(strategy: Any, count: int, seed: int) -> list[Any]:
    """Draw `count` independent values of a strategy; the same seed gives the same values.

    In one run of many draws, Hypothesis makes most values by changing earlier ones, so they are much alike. So each
    value here is the second of its own run. The first is always the simplest value; it is taken once.
    """
    if not count:
        return []
    found = [value for i in range(max(1, count - 1)) for value in _run(strategy, seed * 1_000_003 + i)[bool(i) :]]
    return found[:count]


def _run(strategy: Any, seed: int) -> list[Any]:
    """Draw the simplest value, and one other if there is any. The value drawn first in the second run is never the
    simplest, so an unused number is drawn first."""
    found: list[Any] = []

    @seeded(seed)
    @_QUIET
    @given(st.integers(0, 1 << 30), strategy)
    def collect(_: int, drawn: Any) -> None:
        found.append(drawn)

    collect()
    return found
