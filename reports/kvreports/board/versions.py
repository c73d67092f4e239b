"""Releases of an engine side by side: which bugs each of them has, by the script of each bug."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Literal

from kvreports.board.judged_releases import Cell, JudgedCache, cells, parts
from kvreports.clauses import rank
from kvspec.records.document import Document, Part

Answer = Literal["has it", "not there", "cannot open", "not judged"]
"""What a script says of a release. `cannot open`: the release has no such class or method, so that nothing is said.
`not judged`: the script ended in another error, or took too long."""


class Release(Part):
    """A release: its day, and the versions of what was installed with it."""

    version: str
    day: str
    beside: dict[str, str]


class Seen(Part):
    """What a script says of one release, and the line that it printed of what was seen, or its error."""

    version: str
    answer: Answer
    told: str


class Shown(Part):
    """A bug by its script: what it is, its sort, and what each release answers, in the order of releases."""

    script: str
    says: str
    sort: str
    seen: list[Seen]


class Versions(Document, tag_field="kvversions", tag=1):
    """What scripts of known deviations, and the suite, say of several releases of an engine, the oldest first."""

    NAME: ClassVar = "a record of releases"
    WRITTEN_BY: ClassVar = "nox -s versions"

    engine: str
    spec: str
    """The version of the spec whose deviations these are."""
    made: str
    """The day on which the scripts were run."""
    releases: list[Release]
    bugs: list[Shown]
    caches: list[JudgedCache] = []  # noqa: RUF012


def hole(record: Versions) -> str:
    """What a record lacks: a release, or a bug or a cache in one of the releases. Empty if it is whole."""
    releases = [release.version for release in record.releases]
    some = [one.version for cache in record.caches[:1] for one in cache.seen]
    told = [(bug.script, [seen.version for seen in bug.seen], releases) for bug in record.bugs]
    told += [(cache.name, [seen.version for seen in cache.seen], some) for cache in record.caches]
    lacking = [name for name, found, expected in told if found != expected or not {*found} <= {*releases}]
    if not releases:
        return "it names no release"
    return f"{lacking[0]:.60} is not told of each release" if lacking else ""


@dataclass(frozen=True)
class Row:
    """A bug, its clauses, and a cell for each release; `script` and `draft` are addresses, or empty."""

    bug: Shown
    clauses: tuple[str, ...] = ()
    script: str = ""
    draft: str = ""

    @property
    def cells(self) -> list[Cell]:
        """A cell for each release. A bug that is not there is mended where an earlier release has it."""
        had, cells = False, list[Cell]()
        for seen in self.bug.seen:
            cells.append(Cell("mended" if had and seen.answer == "not there" else seen.answer, seen.told))
            had = had or seen.answer == "has it"
        return cells

    @property
    def story(self) -> str:
        """When it came and when it was mended, as far as releases were judged: `came with 0.28.4`."""
        judged = [s for s in self.bug.seen if s.answer in ("has it", "not there")]
        turns = [next(same) for _, same in groupby(judged, key=lambda s: s.answer)]
        if not turns:
            return "no release could be judged"
        words = [f"{'came with' if s.answer == 'has it' else 'mended in'} {s.version}" for s in turns[1:]]
        if len(judged) == 1:
            return f"{judged[0].version} alone could be judged"
        if not words:
            return "in all that were judged" if turns[0].answer == "has it" else "in none that were judged"
        return ", ".join(words)


@dataclass(frozen=True)
class Compared:
    """The releases of one engine and the rows of its bugs; `address` is that of the record."""

    record: Versions
    rows: tuple[Row, ...]
    address: str = ""

    @property
    def headline(self) -> str:
        """What the newest release has, what came and what was mended among these releases, in numbers."""
        stories = [row.story for row in self.rows]
        has = sum(row.bug.seen[-1].answer == "has it" for row in self.rows)
        came, mended = (sum(word in story for story in stories) for word in ("came with", "mended in"))
        was = "was" if mended == 1 else "were"
        told = f"{self.record.releases[-1].version} has {has} of these {len(self.rows)} bugs"
        return f"{told}. Within these releases {came} came and {mended} {was} mended"

    @property
    def releases_judged(self) -> list[str]:
        """The releases that the suite judged."""
        return [one.version for cache in self.record.caches[:1] for one in cache.seen]

    @property
    def judged(self) -> list[tuple[str, list[Cell]]]:
        """Each cache that the suite judged, with a cell for each of these releases."""
        return [(cache.name, cells(cache)) for cache in self.record.caches]

    @property
    def parts(self) -> dict[str, list[str]]:
        """What the suite found, in lines under titles."""
        return parts(self.record.caches)

    @property
    def installed(self) -> list[str]:
        """What each release was judged with: `0.27.1 (2025-09-04): mlx 0.29.0, python 3.12.1`."""
        return [
            f"{r.version} ({r.day}): {', '.join(f'{name} {v}' for name, v in r.beside.items())}"
            for r in self.record.releases
        ]


def compared(
    record: Versions,
    clauses: Mapping[str, tuple[str, ...]],
    sorts: tuple[str, ...],
    links: Mapping[str, tuple[str, str]],
    address: str,
) -> Compared:
    """The rows of a record, the gravest sorts first. `clauses` and `links` (script and draft) are by script."""
    bugs = sorted(record.bugs, key=lambda b: (rank(b.sort, sorts), b.script))
    rows = (Row(b, clauses.get(b.script, ()), *links.get(b.script, ("", ""))) for b in bugs)
    return Compared(record, tuple(rows), address)
