"""How much each source exercised, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from kvreports.clauses import chapter_order, order, rank
from kvreports.run.overview import Column
from kvspec.records.run import SOURCES, Coverage, Record

OPERATIONS = 8
"""Most rows, one for each operation, of a table of pairs."""

REPEATED = ("blind", "alike", "inputs", "geometry", "walk", "large")
"""Sources that repeat the traces of others in another form, or one operation many times. The record has their
pairs; no table shows them."""


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
    return rank(source, SOURCES), chapter_order(chapter)


def _source(name: str, seen: Coverage) -> Source:
    pairs = () if name.partition(" ")[0] in REPEATED else seen.pairs
    found = sorted({word for pair in pairs for word in pair.split()})
    return Source(name, seen, found[:OPERATIONS], max(0, len(found) - OPERATIONS))


LARGE = ("size", "boundaries that were met", "clauses tested there")
"""The columns of the table of large sizes."""


def sizes(record: Record) -> list[list[str]]:
    """A row for each size that large traces met: its chapter, the boundaries, and what was tested there."""
    return [
        [f"{size} ({chapter})", _ranges(met), _tested(record, chapter, size)]
        for chapter, seen in _large(record)
        for size, met in seen.sizes.items()
        if met
    ]


def _large(record: Record) -> Iterator[tuple[str, Coverage]]:
    for name in sorted(record.coverage, key=_order):
        source, _, chapter = name.partition(" ")
        if source == "large":
            yield chapter, record.coverage[name]


def _tested(record: Record, chapter: str, size: str) -> str:
    """The clauses that a check of large traces exercised: `RING-1 to 3, 17; MASK-2`."""
    check = f"{chapter}/large/{size.replace(' ', '-')}"
    ids = sorted((c.id for c in record.clauses if check in c.tests), key=order)
    numbers = [(letters, int(n)) for letters, _, n in (id_.rpartition("-") for id_ in ids) if n.isdecimal()]
    chapters = groupby(numbers, key=lambda each: each[0])
    return "; ".join(f"{letters}-{_ranges([n for _, n in each])}" for letters, each in chapters)


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers in words: those that follow one another as `1 to 3`."""
    runs = [[n for _, n in run] for _, run in groupby(enumerate(numbers), key=lambda at: at[1] - at[0])]
    return ", ".join(f"{run[0]} to {run[-1]}" if run[1:] else str(run[0]) for run in runs)


def exercised(counts: Mapping[str, int]) -> str:
    """One line: how often each source exercised a clause."""
    known = [s for s in SOURCES if counts.get(s)]
    return ", ".join(f"{s} {counts[s]:,}" for s in [*known, *sorted(set(counts) - set(SOURCES))])
