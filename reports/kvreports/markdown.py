"""Writes Markdown in which any text is shown unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tabulate import tabulate

from kvreports.clauses import ID
from kvreports.safe_text import line, shortened
from kvspec.reading.moved_clauses import now
from kvspec.registry import LETTERS

WIDEST = 240
"""Characters of a row up to which the columns of a table are aligned."""

_MARKS = re.compile(r"([\\`*_\[\]<>|#~@$&])")


def literal(text: str, limit: int = 600) -> str:
    """The text in one line, its marks escaped."""
    return _MARKS.sub(r"\\\1", shortened(line(text), limit))


def code(text: str, limit: int = 600) -> str:
    """The text as code in one line, whatever backticks it holds. Not for cells of a table."""
    text = shortened(line(text), limit)
    ticks = "`" * (_longest(text) + 1)
    pad = " " if "`" in text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def cited(ids: Sequence[str], spec: str = "", limit: int = 2000) -> str:
    """Ids of clauses. With the address of the chapters' folder, each is a link to its anchor."""
    return ", ".join(_link(id_, spec) for id_ in ids) if spec else literal(", ".join(ids), limit)


def _link(id_: str, spec: str) -> str:
    match = ID.fullmatch(now(id_))
    chapter = LETTERS.get(match[1]) if match else None
    return f"[{id_}]({spec}/{chapter}.md#{now(id_)})" if chapter else literal(id_)


def fenced(text: str) -> str:
    """Lines of text as a block of code."""
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}text\n{text}\n{fence}"


def _longest(text: str) -> int:
    return max((len(ticks) for ticks in re.findall("`+", text)), default=0)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table. Its cells are Markdown already. Columns are aligned unless the table is wide. Most of a wide
    aligned table would be spaces, and code hosts do not render files of more than half a megabyte."""
    aligned = tabulate(rows, head, tablefmt="github", disable_numparse=True)
    if aligned.find("\n") <= WIDEST:
        return aligned
    first, *others = (f"| {' | '.join(cells)} |" for cells in (head, *rows))
    return "\n".join((first, "|---" * len(head) + "|", *others))
