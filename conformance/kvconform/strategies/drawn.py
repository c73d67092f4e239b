"""Hypothesis as a source: it draws first, and what is drawn is judged later; shrinking is the bench's."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded


def some(strategy: Any, count: int, seed: int) -> list[Any]:
    """So many values of a strategy, the same for the same seed."""
    found: list[Any] = []
    if not count:
        return found

    @seeded(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(drawn: Any) -> None:
        found.append(drawn)

    collect()
    return found
