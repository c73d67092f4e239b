"""What one check of exploration draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from kvconform.generate import strategies
from kvconform.generate.strategies import caches
from kvspec.registry import CACHES, found


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


def on_cache(kind: str, operations: tuple[str, ...], name: str = "", *needs: str) -> Exploration:
    """Traces on a cache of one sequence."""
    return Exploration(name or kind, (kind, *needs), partial(caches.traces, kind, operations), kind)


def traces_of(chapter: str) -> Any:
    """Give the traces of a chapter, or of a kind of cache with snapshots, to add something to."""
    if chapter in CACHES:
        return caches.traces(chapter, caches.SNAPSHOTS)
    return import_module(f"{strategies.__name__}.{chapter}").explored()
