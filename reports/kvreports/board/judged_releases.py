"""What the suite found in the caches of each release: a cell for each, and what changed from one to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from kvspec.records.document import Part

NOT_FILED = "not filed"
SHOWN = 12
"""Clauses that a line names."""


class Found(Part):
    """A bug that the harness found in a cache: its words, its sort, its clauses, and its script if it has one."""

    says: str
    sort: str
    script: str
    clauses: list[str]


class Judged(Part):
    """What a quick run of the suite found in a cache of one release. `told`: its result in words, or why there is
    none. `broke` and `mended`: clauses, compared with the release before that was judged."""

    version: str
    answer: Literal["judged", "cannot open", "not judged"]
    told: str
    bugs: list[Found] = []  # noqa: RUF012  (msgspec copies it)
    broke: list[str] = []  # noqa: RUF012
    mended: list[str] = []  # noqa: RUF012


class JudgedCache(Part):
    """A cache of the engine, by the name of its adapter, in the releases that the suite judged, in their order."""

    name: str
    seen: list[Judged]


class Cell(NamedTuple):
    """What a page says of one release in a word or two, and what was seen."""

    word: str
    told: str


def cells(cache: JudgedCache) -> list[Cell]:
    """A cell for each release: how many bugs a quick run found, and how many of them have no script yet."""
    return [Cell(_word(one), one.told) for one in cache.seen]


def _word(one: Judged) -> str:
    if one.answer != "judged":
        return one.answer
    new = sum(bug.sort == NOT_FILED for bug in one.bugs)
    count = f"{len(one.bugs)} bug{'s' if len(one.bugs) != 1 else ''}"
    return f"{count}, {new} of them not filed" if new else count


def changes(caches: Sequence[JudgedCache]) -> Iterator[str]:
    """What changed since the release before that was judged: `mlx-batch, 0.30.7 to 0.31.3: mended RING-1`."""
    for cache in caches:
        before = ""
        for one in (seen for seen in cache.seen if seen.answer == "judged"):
            turns = [f"{word} {_named(ids)}" for word, ids in (("broke", one.broke), ("mended", one.mended)) if ids]
            if turns:
                yield f"{cache.name}, {before} to {one.version}: {'; '.join(turns)}"
            before = one.version


def unfiled(caches: Sequence[JudgedCache]) -> Iterator[str]:
    """Bugs that have no script, each once for a cache, with the releases that have it and its shortest trace."""
    for cache in caches:
        found: dict[str, list[str]] = {}
        for one in cache.seen:
            for bug in (b for b in one.bugs if b.sort == NOT_FILED):
                found.setdefault(f"{bug.says} ({_named(bug.clauses)})", []).append(one.version)
        yield from (f"{cache.name}, {', '.join(versions)}: {says}" for says, versions in found.items())


def unopened(caches: Sequence[JudgedCache]) -> Iterator[str]:
    """Why caches could not be judged, each reason once, with the caches and releases."""
    found: dict[str, dict[str, list[str]]] = {}
    for cache in caches:
        for one in (seen for seen in cache.seen if seen.answer != "judged"):
            found.setdefault(one.told, {}).setdefault(one.version, []).append(cache.name)
    for told, by in found.items():
        where = "; ".join(f"{version}: {', '.join(names)}" for version, names in by.items())
        yield f"{told} ({where})"


def _named(ids: list[str]) -> str:
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(i or "what it does not claim" for i in ids[:SHOWN]) + more


def parts(caches: Sequence[JudgedCache]) -> dict[str, list[str]]:
    """What stands below the table of caches: lines under their titles, or nothing where there are none."""
    found = {
        "What changed, clause by clause": [*changes(caches)],
        "Bugs without a script": [*unfiled(caches)],
        "What could not be judged": [*unopened(caches)],
    }
    return {title: lines for title, lines in found.items() if lines}
