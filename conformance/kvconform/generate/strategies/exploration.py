"""What one check of exploration draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from kvconform.generate.strategies import caches


@dataclass(frozen=True)
class Exploration:
    """A strategy, and what an adapter must claim to be judged by it."""

    name: str
    needs: tuple[str, ...]
    """Chapters it takes beside its own."""
    strategy: Callable[[], Any]
    counted_as: str = ""
    """What its coverage is counted under, where that is not the chapter."""


def on_cache(kind: str, operations: tuple[str, ...], name: str = "", *needs: str) -> Exploration:
    """Traces on a cache of one sequence."""
    return Exploration(name or kind, (kind, *needs), partial(caches.traces, kind, operations), kind)
