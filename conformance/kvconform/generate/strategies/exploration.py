"""What one check of exploration draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvconform.generate import strategies
from kvspec.registry import found


@dataclass(frozen=True)
class Exploration:
    """A strategy, and what an adapter must claim to be judged by it."""

    name: str
    needs: tuple[str, ...]
    """Chapters it takes beside its own."""
    strategy: Callable[[], Any]
    counted_as: str = ""
    """What its coverage is counted under, where that is not the chapter."""


def explorations() -> dict[str, tuple[Exploration, ...]]:
    """Give the explorations of each chapter."""
    return found(strategies.__name__, "EXPLORATIONS")
