"""Worked examples: tables in the chapters that are also executed. One row a step.

Example RING-19.1, ring window=3

| do       | offset         | slots | each query sees |
    |---|---|---|---|
    | append 3 | 3              | a b c |                 |
    | append 1 | 4              | d b c | b c d           |
    | rewind 3 | refused RING-10 | d b c |                |

Letters name rows in the order they were appended, so a dead row keeps its letter. A blank cell says nothing. `none`
is no array, `empty` an array of no rows; a query that sees nothing is written `-`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kvspec import notation
from kvspec.errors import BadInput
from kvspec.reading import columns
from kvspec.trace import Trace

_EXAMPLE = re.compile(
    r"^Example (?P<clause>[A-Z]+-\d+)\.(?P<n>\d+), (?P<kind>\w+)(?P<fields>[^\n]*)\n\n"
    r"\|(?P<head>[^\n]+)\|\n\|[-| :]+\|\n(?P<body>(?:\|[^\n]*\|(?:\n|\Z))+)",
    re.M,
)


@dataclass(frozen=True)
class Row:
    """The filled cells of one step. Keys are headings of columns."""

    said: dict[str, Any]


@dataclass(frozen=True)
class Example:
    """One worked example: a trace and the table's row for each step."""

    id: str
    clause: str
    trace: Trace
    rows: tuple[Row, ...]


def parse(text: str, where: str) -> tuple[Example, ...]:
    """Parse all examples in a piece of a chapter. Raises BadInput."""
    return tuple(_example(m, where) for m in _EXAMPLE.finditer(text))


def _example(m: re.Match[str], where: str) -> Example:
    id_ = f"{m['clause']}.{m['n']}"
    headings = [c.strip() for c in m["head"].split("|")]
    if headings[0] != "do" or not all(map(columns.known, headings[1:])):
        raise BadInput(f"{where}: {id_}: columns are do, {', '.join(columns.every())}; found {', '.join(headings)}")
    lines = [[c.strip() for c in line.strip().strip("|").split("|")] for line in m["body"].splitlines()]
    if any(len(line) != len(headings) for line in lines):
        raise BadInput(f"{where}: {id_}: every row needs {len(headings)} cells")
    try:
        trace = notation.trace(m["kind"], m["fields"], "; ".join(line[0] for line in lines))
        said = tuple(_row(headings[1:], line[1:]) for line in lines)
    except (BadInput, ValueError, KeyError) as e:
        raise BadInput(f"{where}: {id_}: {e}") from None
    return Example(id_, m["clause"], trace, said)


def _row(headings: list[str], cells: list[str]) -> Row:
    return Row({h: columns.read(h, cell) for h, cell in zip(headings, cells, strict=True) if cell})
