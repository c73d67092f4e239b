"""The traces that mutants are tried on: the suite's worked examples, frozen covers and explored traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from kvconform.generate import frozen_covers, variations
from kvconform.generate.large import sizes
from kvconform.generate.strategies import sample
from kvconform.generate.strategies.exploration import explorations
from kvspec.reading.clauses import index
from kvspec.reading.examples import Example
from kvspec.trace import Trace

SEED = 20
"""Of what is drawn."""

BLIND, ALIKE = 2, 3
"""Of so many explored traces one is tried unobserved, and one with rows that are alike: as in a run."""

EXPLORED = 60
"""Traces drawn for a chapter and kind of cache."""


@dataclass(frozen=True)
class Item:
    """A trace; of a worked example, its table too."""

    trace: Trace
    example: Example | None = None


@cache
def examples(chapter: str) -> tuple[Item, ...]:
    """The worked examples of a chapter."""
    return tuple(Item(e.trace, e) for c in index().values() if c.chapter == chapter for e in c.examples)


@cache
def covers(chapter: str) -> tuple[Item, ...]:
    """The traces of a chapter's frozen covers, shortest first."""
    traces = (t for frozen in frozen_covers.load(chapter) for t in frozen.traces())
    return tuple(Item(t) for t in sorted(traces, key=lambda t: len(t.ops)))


@cache
def explored(chapter: str) -> tuple[Item, ...]:
    """Traces as exploration draws them, the same every time."""
    return tuple(
        Item(t) for e in explorations().get(chapter, ()) for t in sample.some(e.strategy(), EXPLORED, seed=SEED)
    )


@cache
def blind(chapter: str) -> tuple[Item, ...]:
    """The explored traces, performed while nobody looks."""
    return tuple(Item(variations.blind(item.trace)) for item in explored(chapter)[::BLIND])


@cache
def alike(chapter: str) -> tuple[Item, ...]:
    """The explored traces, with rows that are alike."""
    return tuple(Item(variations.alike(item.trace)) for item in explored(chapter)[::ALIKE])


@cache
def large(chapter: str) -> tuple[Item, ...]:
    """The large traces of a chapter, the same every time."""
    return tuple(Item(t) for size in sizes() if size.chapter == chapter for _, t in size.traces(SEED))


SOURCES: dict[str, Callable[[str], tuple[Item, ...]]] = {
    "examples": examples,
    "cover": covers,
    "explored": explored,
    "blind": blind,
    "alike": alike,
    "large": large,
}
"""The traces of a chapter, by what the report calls their source."""

Hints = dict[str, tuple[Item, ...]]
"""What to try first, by source."""
