"""Hypothesis as a source: it draws first, and what is drawn is judged later; shrinking is the bench's."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

_QUIET = settings(
    max_examples=2, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


def some(strategy: Any, count: int, seed: int) -> list[Any]:
    """So many values of a strategy, the same for the same seed, each drawn as if it were the only one.

    Of many draws in one run Hypothesis makes most by changing those before, so that they are much alike. Here each
    is the second of a run of its own; the first is always the simplest there is, which counts once.
    """
    if not count:
        return []
    found = [value for i in range(max(1, count - 1)) for value in _run(strategy, seed * 1_000_003 + i)[bool(i) :]]
    return found[:count]


def _run(strategy: Any, seed: int) -> list[Any]:
    """The simplest value, and one other if there is any. What is drawn first is never the simplest in the second
    of them, so that is a number which nobody wants."""
    found: list[Any] = []

    @seeded(seed)
    @_QUIET
    @given(st.integers(0, 1 << 30), strategy)
    def collect(_: int, drawn: Any) -> None:
        found.append(drawn)

    collect()
    return found
