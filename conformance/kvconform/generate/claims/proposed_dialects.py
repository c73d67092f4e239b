"""Dialects to propose: an engine that fails the traces of a dialect by the spec's default may keep another value.

The records of the chapters give traces that tell the values of a dialect apart. A value is proposed if the engine
fails one of them by the default, and none by this value. If it fails by every value, it has a fault, and no dialect
explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from kvconform.generate.claims.fit_to_adapter import suits, within
from kvspec.chapters.record import Dialect
from kvspec.contract import CHAPTERS, Description
from kvspec.notation import from_sentence
from kvspec.operations.abilities import needed
from kvspec.registry import DIALECTS, KINDS, dialects
from kvspec.trace import Trace

Fails = Callable[[Trace, Description], bool]
"""Tells whether an adapter differs on a trace, judged by a description."""

BESIDE_KINDS = tuple(chapter for chapter in CHAPTERS if chapter not in KINDS)
"""Chapters that no cache is a kind of."""

NUMBERS = range(-1, 3)
"""The numbers that are tried, of a dialect that takes numbers."""


def proposed(adapter: Description, fails: Fails) -> Description:
    """The adapter with each dialect that explains why it fails by the default. One may show only behind another: it
    is asked again for the rest until nothing is found."""
    for chapter, claim in adapter.chapters.items():
        for name in (n for n in dialects(chapter) if n not in claim.dialects):
            if (value := _value(adapter, chapter, DIALECTS[name], fails)) is not None:
                return proposed(_declaring(adapter, chapter, name, value), fails)
    return adapter


def _value(adapter: Description, chapter: str, dialect: Dialect, fails: Fails) -> int | str | None:
    """The value by which the traces of a dialect pass, if they do not by the default; else None."""
    traces = list(_traces(adapter, chapter, dialect))
    if not any(fails(trace, adapter) for trace in traces):
        return None
    for value in _values(dialect):
        declaring = _declaring(adapter, chapter, dialect.name, value)
        if not any(fails(trace, declaring) for trace in traces):
            return value
    return None


def _traces(adapter: Description, chapter: str, dialect: Dialect) -> Iterator[Trace]:
    """The traces of a dialect in operations that the adapter claims: on this kind, or on any of a chapter beside
    the kinds."""
    for trace in (within(from_sentence(words), adapter) for words in dialect.traces):
        asked = [ability for op in trace.ops for ability in needed(op, trace.kind, trace.config)]
        if chapter in (trace.kind, *BESIDE_KINDS) and suits(trace, adapter) and adapter.able(asked):
            yield trace


def _values(dialect: Dialect) -> list[int | str]:
    """All words of a dialect, then small numbers, where it takes numbers; not the default."""
    numbers = [n for n in NUMBERS if dialect.least is not None and n >= dialect.least]
    every: list[int | str] = [*dialect.words, *numbers]
    return [value for value in every if value != dialect.default]


def _declaring(adapter: Description, chapter: str, name: str, value: int | str) -> Description:
    claim = adapter.chapters[chapter]
    declared = replace(claim, dialects={**claim.dialects, name: value})
    return replace(adapter, chapters={**adapter.chapters, chapter: declared})
