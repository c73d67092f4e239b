"""How much each source exercised, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvreports.clauses import chapter_order
from kvreports.run.overview import Column
from kvspec.records.run import SOURCES, Coverage, Record

OPERATIONS = 16
"""Operations a table of pairs has rows for."""


@dataclass(frozen=True)
class Source:
    """One source on one chapter."""

    name: str
    seen: Coverage
    operations: list[str]
    more: int
    """Operations beyond those in the table."""

    def pair(self, first: str, then: str) -> int:
        """How often one operation followed another."""
        return self.seen.pairs.get(f"{first} {then}", 0)


def alike(columns: Sequence[Column]) -> list[tuple[str, Column]]:
    """The runs with the same coverage: their labels, and the first of them."""
    found: list[tuple[list[str], Column]] = []
    for column in columns:
        same = next((labels for labels, first in found if first.record.coverage == column.record.coverage), None)
        if same is None:
            found.append(([column.label], column))
        else:
            same.append(column.label)
    return [(", ".join(labels), first) for labels, first in found]


def sources(record: Record) -> list[Source]:
    """Every source, in the order of the sources, then of the chapters."""
    return [_source(n, record.coverage[n]) for n in sorted(record.coverage, key=_order)]


def _order(name: str) -> tuple[int, tuple[int, str]]:
    source, _, chapter = name.partition(" ")
    return SOURCES.index(source) if source in SOURCES else len(SOURCES), chapter_order(chapter)


def _source(name: str, seen: Coverage) -> Source:
    found = sorted({word for pair in seen.pairs for word in pair.split()})
    return Source(name, seen, found[:OPERATIONS], max(0, len(found) - OPERATIONS))


def exercised(counts: Mapping[str, int]) -> str:
    """One line: how often each source exercised a clause."""
    known = [s for s in SOURCES if counts.get(s)]
    return ", ".join(f"{s} {counts[s]:,}" for s in [*known, *sorted(set(counts) - set(SOURCES))])
