"""`kvconform list`: lists adapters, chapters or clauses."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections import Counter

from tabulate import tabulate

from kvadapters import find
from kvreports import terminal
from kvspec.chapters import TEXTS
from kvspec.reading.clauses import index, title
from kvspec.registry import LETTERS

Rows = list[dict[str, str]]

MOST, GAP = 24, 2
"""Characters of a column before the last at most; between two columns, and beside a heading."""


def adapters() -> Rows:
    """List built-in adapters and those of other distributions."""
    return [{"adapter": name, "where": where} for name, where in sorted(find.names().items())]


def chapters() -> Rows:
    """List the chapters: the letters of their clauses, how many there are, and what they are about."""
    counts = Counter(c.chapter for c in index().values())
    letters = {chapter: prefix for prefix, chapter in LETTERS.items()}
    return [{"chapter": p, "letters": letters[p], "clauses": str(counts[p]), "about": title(p)} for p in TEXTS]


def clauses() -> Rows:
    """List every clause with its level and its sentence."""
    return [
        {"clause": c.id, "level": c.level, "caches": " ".join(c.applies), "text": c.text} for c in index().values()
    ]


def main(options: Namespace) -> int:
    """Print one list, or adapters and chapters."""
    lists = {"adapters": adapters, "chapters": chapters, "clauses": clauses}
    wanted = [options.what] if options.what else ["adapters", "chapters"]
    found = {name: lists[name]() for name in wanted}
    if options.format == "json":
        json.dump(found[options.what] if options.what else found, sys.stdout, indent=1)
        print()
        return 0
    shown = _markdown if options.format == "markdown" else _for_terminal
    print("\n\n".join(map(shown, found.values())))
    return 0


def _markdown(rows: Rows) -> str:
    return tabulate(rows, headers="keys", tablefmt="github")


def _for_terminal(rows: Rows) -> str:
    """A table as wide as the terminal: the last column takes what the others leave, where they are not too wide."""
    head = list(rows[0])
    longest = [max(len(name) + GAP, *(len(row[name]) for row in rows)) for name in head]
    widths = [min(wide, MOST) for wide in longest[:-1]]
    left = terminal.width() - sum(widths) - GAP * len(widths)
    return terminal.table(head, [list(row.values()) for row in rows], [*widths, max(terminal.LEAST, left)])
