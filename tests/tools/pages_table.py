"""The page of foreign pools: each clause of PAGE, what each pool of another project makes of it, and why fewer than
two pass one.

`python -m tools.pages_table` writes it from the published records and the reasons of `pages_table.toml`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kvreports import json_file, markdown
from kvspec import tables
from kvspec.reading.clauses import index
from kvspec.records.run import HELD, Record

PAGE = Path("reports", "published", "PAGES.md")
RECORDS = Path("reports", "published", "engines")

ENOUGH = 2
"""How many pools are to pass a clause."""

WORDS = {"NOT_CLAIMED": "not claimed", "XFAIL": "deviates, filed", "NOT_RUN": "not run", "FAIL": "deviates"}

TEXT = """\
# Pages in other engines

Each clause of [PAGE](../../spec/kvspec/chapters/page.md), and what pools of other projects make of it. Where fewer
than two pass, the last column says why. The pools of vLLM, SGLang, LMCache and mlx-lm find rows again by their
tokens. They are judged by [KEY](../../spec/kvspec/chapters/keyed.md). `python -m tools.pages_table`, in `tests/`,
writes this page.

"""
"""What the page begins with."""

Verdicts = Mapping[str, Mapping[str, str]]
"""What each pool makes of each clause, by the pool's name."""


def verdicts(root: Path) -> Verdicts:
    """Read the published records of adapters that claim PAGE."""
    records = {p.parent.name: json_file.load(p, Record) for p in sorted((root / RECORDS).glob("*/record.json"))}
    pools = {name: record for name, record in records.items() if "page" in record.adapter["chapters"]}
    return {name: {c.id: c.verdict for c in record.clauses} for name, record in pools.items()}


def clauses() -> list[str]:
    """The clauses of PAGE, in the order of their numbers."""
    return sorted(
        (id for id, c in index().items() if c.chapter == "page"), key=lambda id: int(id.partition("-")[2])
    )


def reasons() -> dict[str, str]:
    """The reason for each clause that has one."""
    listed = tables.table("tools", "pages_table")["reason"]
    return {id: each["says"] for each in listed for id in each["clauses"]}


def passes(found: Verdicts, clause: str) -> int:
    """How many pools pass a clause."""
    return sum(each.get(clause) in HELD for each in found.values())


def wrong(found: Verdicts, why: Mapping[str, str]) -> list[str]:
    """Clauses that too few pools pass without a reason, and reasons that stand for no such clause."""
    few = {id for id in clauses() if passes(found, id) < ENOUGH}
    return sorted(few ^ set(why))


def rows(found: Verdicts, why: Mapping[str, str]) -> Iterator[Sequence[str]]:
    """A row for each clause."""
    for id in clauses():
        said = (each.get(id, "NOT_RUN") for each in found.values())
        yield id, *("pass" if v in HELD else WORDS.get(v, v.lower()) for v in said), why.get(id, "")


def page(root: Path) -> str:
    """The page as text."""
    found = verdicts(root)
    return TEXT + markdown.table(["clause", *found, "why fewer than two pass"], list(rows(found, reasons()))) + "\n"


if __name__ == "__main__":
    root = Path(__file__).parents[2]
    (root / PAGE).write_text(page(root), encoding="utf-8")
    sys.exit(bool(wrong(verdicts(root), reasons())))
