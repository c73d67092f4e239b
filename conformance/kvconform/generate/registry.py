"""What the chapters' strategies give: plans for covers, and explorations."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kvconform.generate import strategies
from kvconform.generate.strategies import cache_moves
from kvconform.generate.strategies.exploration import Exploration
from kvspec.chapters import CHAPTERS
from kvspec.operations.table import caches_with
from kvspec.registry import KINDS, LETTERS, objects

if TYPE_CHECKING:
    from kvconform.generate.strategies.plan_moves import Plan


def planned(chapters: Collection[str] = CHAPTERS) -> dict[str, Callable[..., list[Plan]]]:
    """Give the chapters that have plans for covers, and what makes these. The others have no states to cover."""
    return objects(strategies.__name__, "plans", chapters)


def explorations(chapters: Collection[str] = CHAPTERS) -> dict[str, tuple[Exploration, ...]]:
    """Give the explorations of each chapter."""
    listed = objects(strategies.__name__, "EXPLORATIONS", chapters)
    return {chapter: tuple(map(_told, each)) for chapter, each in listed.items()}


def _told(exploration: Exploration) -> Exploration:
    """Hand a strategy what draws the traces that it takes."""
    if exploration.of_one:
        return replace(exploration, strategy=partial(exploration.strategy, _of_one))
    if exploration.over:
        return replace(exploration, strategy=partial(exploration.strategy, partial(traces_of, exploration.over)))
    return exploration


def _of_one(kind: str, operations: tuple[str, ...]) -> Any:
    """Draw traces on a cache of one sequence."""
    from kvconform.generate.strategies import caches  # needs Hypothesis, which those who want only plans may lack

    return caches.traces(kind, operations)


def traces_of(chapter: str, claimed: Collection[str] = CHAPTERS) -> Any:
    """Draw traces of a chapter, for a caller that adds something to them. Those of a kind of cache have snapshots
    if these are claimed. Those of a chapter that is no kind are drawn on the kinds that are."""
    if chapter in caches_with("restore"):
        return _of_one(chapter, cache_moves.SNAPSHOTS if SNAPSHOTS in claimed else cache_moves.BASE)
    explored = objects(strategies.__name__, "explored", (chapter,))[chapter]
    return explored() if chapter in KINDS or claimed is CHAPTERS else explored(claimed=claimed)


SNAPSHOTS = LETTERS["SNAP"]
