"""Text for a terminal: paragraphs and tables whose ids are never broken in two, and colours.

Verdicts are coloured, and what differs. Words and marks say the same without colours."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TextIO

from tabulate import tabulate

from kvreports.safe_text import plain

LEAST, WIDEST, USUAL = 20, 140, 100
"""Characters of a line: at least, at most, and where there is no terminal."""

RED, GREEN, YELLOW, BOLD, OFF = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1m", "\x1b[0m"

STYLES = (
    (RED, r"\b(?:FAIL|CRASH|HANG|OOM|PROTOCOL|XPASS|HARNESS_ERROR)\b|(?<=: )Does not conform"),
    (GREEN, r"(?<=: )Conforms(?! *,)|^ok\b"),
    (YELLOW, r"\b(?:XFAIL|PARTLY_OBSERVED|BY_ADAPTER)\b|^(?:QUICK|PARTIAL) RUN\b"),
    (BOLD, r"^Look first at .*?(?=:)|\bDiagnosis:|In a model:"),
    (RED, r"^! *\d+(?= )|\[found [^\]\n]*\]|(?<=[ |])\[[^\s\]]{0,12}\](?= |$)"),
)
"""The texts to colour, as regular expressions; the last ones are the marks of a drawing."""

_STYLE = re.compile("|".join(f"(?P<s{i}>{pattern})" for i, (_, pattern) in enumerate(STYLES)), re.MULTILINE)


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


def wanted(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether to write colours to a stream: to a terminal unless NO_COLOR is set, and to any stream if
    FORCE_COLOR is set."""
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return environment.get("TERM") != "dumb" and stream.isatty()


def paint(text: str) -> str:
    """The text with its verdicts and marks coloured. The text must hold no control characters."""
    return _STYLE.sub(lambda m: f"{STYLES[int((m.lastgroup or 's0')[1:])][0]}{m[0]}{OFF}", text)


def write(stream: TextIO, text: str) -> None:
    """Write to a stream, in colour if it shows colours."""
    if not wanted(stream):
        stream.write(text)
    else:
        getattr(stream, "write_painted", stream.write)(paint(plain(text)))  # what adapters say is in the text
    stream.flush()
