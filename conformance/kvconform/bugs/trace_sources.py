"""The traces that mutants are tried on: those that a run of an adapter judges, of each of its sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain

from kvconform.generate import frozen_covers
from kvconform.generate.amounts import SEED, TRACES
from kvconform.generate.claims.fit_to_adapter import fitted, suits
from kvconform.generate.given_walks import at_all_scales, left_over
from kvconform.generate.large.boundaries import sizes, too_large
from kvconform.generate.real_geometry import GEOMETRIES
from kvconform.generate.registry import explorations
from kvconform.generate.strategies import sample
from kvconform.generate.variations import VARIATIONS
from kvspec.contract import CHAPTERS, Description
from kvspec.reading.clauses import examples_of
from kvspec.reading.examples import Example
from kvspec.registry import KINDS
from kvspec.trace import Trace


@dataclass(frozen=True)
class Item:
    """A trace; of a worked example, its table too."""

    trace: Trace
    example: Example | None = None
    boundary: int = 0
    """The boundary that a large trace meets; 0 for other traces."""


@cache
def examples(chapter: str) -> tuple[Item, ...]:
    """The worked examples of a chapter."""
    return tuple(Item(e.trace, e) for e in examples_of(chapter))


@cache
def covers(chapter: str) -> tuple[Item, ...]:
    """The traces of a chapter's frozen covers, shortest first."""
    return tuple(map(Item, frozen_covers.shortest_first(chapter)))


@cache
def drawn(chapter: str) -> tuple[list[Trace], ...]:
    """What each exploration draws, the same every time."""
    return tuple(sample.some(e.strategy(), e.number(TRACES), seed=SEED) for e in explorations().get(chapter, ()))


@cache
def explored(chapter: str) -> tuple[Item, ...]:
    """The traces of all explorations of a chapter."""
    return tuple(map(Item, chain.from_iterable(drawn(chapter))))


FORMS = {form.name: form for form in VARIATIONS}
"""The forms in which explored traces are judged again, by the names of these sources."""


@cache
def in_form(name: str, chapter: str) -> tuple[Item, ...]:
    """A share of the explored traces in another form."""
    return tuple(map(Item, chain.from_iterable(map(FORMS[name].some, drawn(chapter)))))


@cache
def at_geometry(chapter: str) -> tuple[Item, ...]:
    """The traces of a kind of cache, and a share of the explored ones, at the geometries of released models."""
    of_kind = (t for geometry in GEOMETRIES for t in left_over(chapter, geometry)) if chapter in KINDS else ()
    return (*map(Item, of_kind), *in_form("geometry", chapter))


@cache
def walked(chapter: str) -> tuple[Item, ...]:
    """The walks of a kind of cache, by all that there is to claim."""
    return tuple(map(Item, at_all_scales(chapter, frozenset(CHAPTERS), SEED))) if chapter in KINDS else ()


@cache
def large(chapter: str) -> tuple[Item, ...]:
    """The large traces of a chapter, the same every time."""
    of_chapter = (size for size in sizes() if size.chapter == chapter)
    return tuple(Item(t, boundary=b) for size in of_chapter for b, t in size.traces(SEED))


SOURCES: dict[str, Callable[[str], tuple[Item, ...]]] = {
    "examples": examples,
    "cover": covers,
    "explored": explored,
    **{name: partial(in_form, name) for name in FORMS},
    "geometry": at_geometry,
    "walk": walked,
    "large": large,
}
"""The traces of a chapter, by what the report calls their source; the cheapest first."""

SOONEST = ("examples", *FORMS, "walk", "large", "cover", "explored")
"""The sources, in the order that finds a planted bug soonest: what no example finds mostly takes another form, or a
large size."""


def judged(source: str, item: Item, adapter: Description) -> Trace | None:
    """The trace as a run of this adapter judges it; None if it would leave it out."""
    if source == "examples":
        return item.trace if suits(item.trace, adapter) else None
    suiting = FORMS[source].suiting if source in FORMS else fitted
    suited = next(suiting([item.trace], adapter), None)
    return None if suited and too_large(item.boundary, suited, adapter) else suited


Hints = dict[str, tuple[Item, ...]]
"""What to try first, by source."""
