"""Large traces: one for each boundary that engines have of each size that a configuration or an operation has.

Engines change what they do at such sizes: another kernel, another tile, a first allocation that is full, a number
that no longer fits. Rows are narrow, and what leads up to a boundary is done in runs, which are observed at the
end: a trace of 65,000 rows costs milliseconds. The other sizes of a trace are drawn: steps, windows and pages that
divide the boundary or do not, so that boundaries are also met as sums and multiples.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from random import Random

from kvconform.generate import frozen_large
from kvconform.generate.amounts import MOST_VISIBLE
from kvconform.generate.claims.other_kinds import moved
from kvconform.generate.large import attention, beside, caches, calls, layers, parcels, ragged
from kvconform.generate.large.recipe import Recipe
from kvspec.chapters import CHAPTERS
from kvspec.contract import Description
from kvspec.operations.table import TAKES_QUERIES
from kvspec.trace import Trace, looked_at

AROUND = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 32768, 65536)
"""Sizes at which engines change what they do."""

WIDTHS = (64, 80, 96, 112, 128, 192, 256, 576)
"""Widths of heads that engines have kernels for."""

BOUNDARIES = (1, 2, *(n + by for n in AROUND for by in (-1, 0, 1)))
"""Each of them, one less and one more."""


@dataclass(frozen=True)
class Size:
    """A size of a chapter, and how to make a trace that meets a boundary of it."""

    chapter: str
    name: str
    """`window`, `rows of a prompt`."""
    needs: frozenset[str]
    """Chapters that its traces take."""
    boundaries: tuple[int, ...]
    on: tuple[str, ...]
    """Kinds of which one is enough: where the first is not claimed its traces are moved to another; none for those
    of a kind of their own."""
    make: Callable[[int, Random], str]
    """The trace for one boundary, in a sentence."""

    def traces(self, seed: int, claimed: Collection[str] = CHAPTERS) -> Iterator[tuple[int, Trace]]:
        """Give each boundary with its trace, the same ones for the same seed, on a kind that is claimed."""
        kind = next((kind for kind in self.on if kind in claimed), "")
        for boundary in self.boundaries:
            trace = frozen_large.trace(self.chapter, self.sentence(boundary, seed))
            if there := trace if kind in ("", trace.kind) else moved(trace, kind):
                yield boundary, there

    def sentence(self, boundary: int, seed: int) -> str:
        """Give the trace for one boundary, in a sentence."""
        return self.make(boundary, Random(f"{self.chapter} {self.name} {boundary} {seed}"))


def too_large(boundary: int, trace: Trace, adapter: Description) -> bool:
    """Tell whether a boundary is not judged. At level visible the largest take too long, unless a trace reaches
    them in one run and queries ask about them."""
    asked = any(op["op"] in TAKES_QUERIES for op in trace.ops)
    return boundary > MOST_VISIBLE and not asked and adapter.lowest(looked_at(trace)) == "visible"


def sizes() -> Iterator[Size]:
    """Give every size, chapter by chapter."""
    for module in (caches, beside, attention, calls, parcels, layers, ragged):
        for recipe in module.RECIPES:
            yield Size(recipe.chapter, recipe.size, recipe.needs, _met(recipe), recipe.on, recipe.make)


def _met(recipe: Recipe) -> tuple[int, ...]:
    """Give the boundaries that a recipe meets."""
    widths = WIDTHS if recipe.widths else ()
    return recipe.at or tuple(sorted({n for n in (*BOUNDARIES, *widths) if recipe.least <= n <= recipe.most}))
