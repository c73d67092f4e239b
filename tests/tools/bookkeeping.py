"""The page of bookkeeping in other engines: each clause of PAGE, KEY and MOVE, what each foreign implementation
makes of it, and why fewer than two hold one.

`python -m tools.bookkeeping` writes it from the published records and the reasons of `bookkeeping.toml`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from kvreports import json_file, markdown
from kvspec import tables
from kvspec.reading.clauses import index
from kvspec.records.run import HELD, Record

PAGE = Path("reports", "published", "BOOKKEEPING.md")
RECORDS = Path("reports", "published", "engines")

CHAPTERS = {"page": "PAGE", "keyed": "KEY", "parcels": "MOVE"}
"""The chapters of the page, and the letters of their clauses."""

ENOUGH = 2
"""How many implementations are to hold a clause."""

WORDS = {"NOT_CLAIMED": "not claimed", "XFAIL": "deviates, filed", "NOT_RUN": "not run", "FAIL": "deviates"}

TEXT = """\
# Pages, keys and parcels in other engines

Each clause of [PAGE](../../spec/kvspec/chapters/page.md), [KEY](../../spec/kvspec/chapters/keyed.md) and
[MOVE](../../spec/kvspec/chapters/parcels.md), and what implementations of other projects make of it. *Partly*
stands where it held in all that could be seen. Where fewer than two hold, the last column says why.
The reference, and the caches on devices, claim all clauses of the three chapters at the level of storage.
`python -m tools.bookkeeping`, in `tests/`, writes this page.
"""
"""What the page begins with."""

SECTION = """
## {letters}

{many} of {all} clauses hold on two or more of these.

{table}
"""
"""One chapter's part."""

Verdicts = Mapping[str, Mapping[str, str]]
"""What each implementation makes of each clause, by its name."""


@cache
def records(root: Path) -> dict[str, Record]:
    """Read the published records of adapters, by their names."""
    return {p.parent.name: json_file.load(p, Record) for p in sorted((root / RECORDS).glob("*/record.json"))}


def verdicts(root: Path, chapter: str) -> Verdicts:
    """Give the verdicts of the adapters that claim a chapter."""
    those = {name: record for name, record in records(root).items() if chapter in record.adapter["chapters"]}
    return {name: {c.id: c.verdict for c in record.clauses} for name, record in those.items()}


def clauses(chapter: str) -> list[str]:
    """The clauses of a chapter, in the order of their numbers."""
    return sorted(
        (id for id, c in index().items() if c.chapter == chapter), key=lambda id: int(id.partition("-")[2])
    )


def reasons(chapter: str) -> dict[str, str]:
    """The reason for each clause of a chapter that has one."""
    listed = tables.table("tools", "bookkeeping")["reason"]
    every = {id: each["says"] for each in listed for id in each["clauses"]}
    return {id: says for id, says in every.items() if id.partition("-")[0] == CHAPTERS[chapter]}


def holding(found: Verdicts, clause: str) -> int:
    """How many implementations hold a clause."""
    return sum(each.get(clause) in HELD for each in found.values())


def wrong(chapter: str, found: Verdicts, why: Mapping[str, str]) -> list[str]:
    """Clauses that too few hold without a reason, and reasons that stand for no such clause."""
    few = {id for id in clauses(chapter) if holding(found, id) < ENOUGH}
    return sorted(few ^ set(why))


def word(verdict: str) -> str:
    """A verdict in a cell."""
    held = "pass" if verdict == "PASS" else "partly"
    return held if verdict in HELD else WORDS.get(verdict, verdict.lower())


def rows(chapter: str, found: Verdicts, why: Mapping[str, str]) -> Iterator[Sequence[str]]:
    """A row for each clause."""
    for id in clauses(chapter):
        yield id, *(word(each.get(id, "NOT_RUN")) for each in found.values()), why.get(id, "")


def section(root: Path, chapter: str) -> str:
    """A chapter's part of the page."""
    found, all_ = verdicts(root, chapter), clauses(chapter)
    names = ["clause", *found, "why fewer than two hold"]
    return SECTION.format(
        letters=CHAPTERS[chapter],
        many=sum(holding(found, id) >= ENOUGH for id in all_),
        all=len(all_),
        table=markdown.table(names, list(rows(chapter, found, reasons(chapter)))),
    )


def page(root: Path) -> str:
    """The page as text."""
    return TEXT + "".join(section(root, chapter) for chapter in CHAPTERS)


if __name__ == "__main__":
    root = Path(__file__).parents[2]
    (root / PAGE).write_text(page(root), encoding="utf-8")
    sys.exit(any(wrong(chapter, verdicts(root, chapter), reasons(chapter)) for chapter in CHAPTERS))
