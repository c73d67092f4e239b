"""What the pages of the spec say of every chapter, from the records: `python -m tools.spec_pages` writes it.

The tables of chapters and abilities in the reading guide, the table of dialects on the page of differences, that of
foreign implementations on the page of how it works, and the figures in the README.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kvspec.chapters import CHAPTERS, GENERAL, LETTERS
from kvspec.chapters.record import Dialect
from kvspec.reading.clauses import index, title
from kvspec.registry import RECORDS, abilities
from support.engines.foreign import FOREIGN

ROOT = Path(__file__).parents[2]


def chapters() -> Iterator[str]:
    """Write a row for each chapter."""
    yield from ("| chapter | letters | speaks of |", "|---|---|---|")
    yield f"| [{GENERAL}](kvspec/chapters/{GENERAL}.md) | {LETTERS} | {title(GENERAL)} |"
    for name, record in RECORDS.items():
        yield f"| [{name}](kvspec/chapters/{name}.md) | {record.letters} | {record.says} |"


def able() -> Iterator[str]:
    """Write the abilities of each chapter that has any."""
    yield from ("| chapter | abilities |", "|---|---|")
    for name in CHAPTERS:
        if listed := ", ".join(f"`{ability}`" for ability in abilities(name)):
            yield f"| {name} | {listed} |"


def dialects() -> Iterator[str]:
    """Write a row for each dialect; those of a growing cache are of every cache of one sequence."""
    yield from ("| dialect | values, the default first | see | why engines differ |", "|---|---|---|---|")
    for chapter, record in RECORDS.items():
        for dialect in record.dialects:
            name = f"`{dialect.name}`" if chapter == CHAPTERS[0] else f"{chapter} `{dialect.name}`"
            see = ", ".join(f"[{i}](kvspec/chapters/{index()[i].chapter}.md#{i})" for i in dialect.see)
            yield f"| {name} | {_values(dialect)} | {see} | {dialect.because} |"


def _values(dialect: Dialect) -> str:
    words = [f"`{word}`" for word in dialect.words if word != dialect.default]
    default = dialect.default if isinstance(dialect.default, int) else f"`{dialect.default}`"
    number = {None: [], 0: ["n"]}.get(dialect.least, [f"n from {dialect.least} on"])
    return ", ".join([str(default), *number, *words])


def foreign() -> Iterator[str]:
    """Write which implementation that shares nothing with the reference passes which chapter."""
    yield from ("| chapters | what it is | in `tests/support/engines/foreign` |", "|---|---|---|")
    for each in FOREIGN:
        yield f"| {', '.join(each.chapters)} | {each.what} | `{each.adapter}` |"


TABLES: dict[str, dict[str, Callable[[], Iterable[str]]]] = {
    "spec/README.md": {"| chapter | letters |": chapters, "| chapter | abilities |": able},
    "spec/DIFFERENCES.md": {"| dialect | values": dialects},
    "docs/how-it-works.md": {"| chapters | what it is |": foreign},
}
"""The tables of a page, by the beginnings of their headings."""


def made(page: str) -> str:
    """Give the text of a page, its tables and figures made anew. Raises ValueError for a table that it lacks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for heading, rows in TABLES.get(page, {}).items():
        text = _with_table(text, heading, rows())
    figures = f"There are {len(CHAPTERS)} chapters, {len(index())} clauses."
    text = re.sub(r"There are \d+ chapters, \d+ clauses\.", figures, text)
    return re.sub(r"1 of \d+ chapters\)", f"1 of {len(CHAPTERS)} chapters)", text)


def _with_table(text: str, heading: str, rows: Iterable[str]) -> str:
    before, found, table = text.partition(f"\n{heading}")
    if not found:
        raise ValueError(f"there is no table that begins with {heading!r}")
    return "\n".join([before, *rows, ""]) + "\n" + table.partition("\n\n")[2]


PAGES = (*TABLES, "README.md")

if __name__ == "__main__":
    for page in PAGES:
        (ROOT / page).write_text(made(page), encoding="utf-8")
