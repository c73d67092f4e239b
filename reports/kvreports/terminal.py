"""Text that fits a terminal: paragraphs and tables whose ids are never broken in two."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from textwrap import fill

from tabulate import tabulate

LEAST, WIDEST, USUAL = 20, 140, 100
"""Characters of a line: at least, at most, and where there is no terminal."""


def width() -> int:
    """Characters of a line of the terminal; `COLUMNS` overrules it."""
    return max(LEAST, min(shutil.get_terminal_size((USUAL, 24)).columns, WIDEST))


def paragraph(text: str, wide: int, first: str = "", rest: str | None = None) -> str:
    """The text in lines of `wide` characters. They begin with `first`, all but the first one with `rest`; a hyphen
    ends no line, because ids and names of tests have hyphens."""
    rest = first if rest is None else rest
    return fill(text, wide, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    """A table whose cells are wrapped at these widths, one for each column; empty if there are no rows."""
    cells = [[paragraph(cell, wide) for cell, wide in zip(row, widths, strict=True)] for row in rows]
    return tabulate(cells, head, tablefmt="simple", disable_numparse=True) if rows else ""


def counts(head: Sequence[str], rows: Sequence[Sequence[object]], wide: int) -> str:
    """A table of numbers. Where it is too wide, the words of a heading stand below each other."""
    made = tabulate(rows, head, tablefmt="simple") if rows else ""
    if made.find("\n") <= wide:
        return made
    return tabulate(rows, [word.replace("_", "\n") for word in head], tablefmt="simple")
