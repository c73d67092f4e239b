"""Worked examples: tables that read well rendered and are executed. One row a step.

    Example RING-19.1, ring window=3

    | do       | offset         | slots | each query sees |
    |---|---|---|---|
    | append 3 | 3              | a b c |                 |
    | append 1 | 4              | d b c | b c d           |
    | rewind 3 | refused RING-10 | d b c |                |

Rows are named by letters in the order they were appended, so a dead row keeps its letter. A blank cell says
nothing. `none` is no rows at all, as against `empty`; a query that sees nothing is written `-`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvspec import rows
from kvspec.contract import METERED
from kvspec.errors import BadInput
from kvspec.operations import notation
from kvspec.trace import Trace

_EXAMPLE = re.compile(
    r"^Example (?P<clause>[A-Z]+-\d+)\.(?P<n>\d+), (?P<kind>\w+)(?P<fields>[^\n]*)\n\n"
    r"\|(?P<head>[^\n]+)\|\n\|[-| :]+\|\n(?P<body>(?:\|[^\n]*\|(?:\n|\Z))+)",
    re.M,
)


@dataclass(frozen=True)
class Row:
    """What a table says of one step: only the cells that are filled. Keys as in `COLUMNS`."""

    said: dict[str, Any]


@dataclass(frozen=True)
class Example:
    """One worked example: a trace, and what its table says of each step."""

    id: str
    clause: str
    trace: Trace
    rows: tuple[Row, ...]


def _letters(cell: str) -> list[int] | None:
    if cell == "none":
        return None
    return [] if cell == "empty" else [rows.serial(x) for x in cell.split()]


def _queries(cell: str) -> list[list[int]]:
    return [[] if q.strip() == "-" else sorted(rows.serial(x) for x in q.split()) for q in cell.split(",")]


def _offset(cell: str) -> int | str:
    if cell.isdigit():
        return int(cell)
    if re.fullmatch(r"refused [A-Z]+-\d+", cell):
        return cell
    raise ValueError(f"an offset is a number or 'refused CLAUSE', not {cell!r}")


def _result(cell: str) -> str:
    if re.fullmatch(r"refused [A-Z]+-\d+", cell):
        return cell
    raise ValueError(f"a result is blank or 'refused CLAUSE', not {cell!r}")


def _yes(cell: str) -> bool:
    return {"yes": True, "no": False}[cell]


def _ranges(cell: str) -> list[tuple[int, int] | None]:
    return [None if r.strip() == "none" else _range(r) for r in cell.split(",")]


def _range(text: str) -> tuple[int, int]:
    start, stop = text.split("..")
    return int(start), int(stop)


def _numbers(cell: str) -> list[int] | None:
    return None if cell == "none" else [] if cell == "empty" else [int(n) for n in cell.split()]


def numbers(found: Any) -> list[str]:
    """Elements of an output as tables have them: four digits of each."""
    return [f"{float(x):.4g}" for x in found]


def _outputs(cell: str) -> list[str]:
    return [] if cell == "empty" else numbers(cell.split(","))


def _mask(cell: str) -> Any:
    return None if cell == "none" else notation.operation(f"mask {cell}")["parts"]


def _rotated(cell: str) -> list[list[str]]:
    return [] if cell == "empty" else [numbers(row.split()) for row in cell.split(",")]


def _bound(cell: str) -> int | None:
    return None if cell == "none" else int(cell)


COLUMNS: dict[str, Callable[[str], Any]] = {
    "result": _result,
    "offset": _offset,
    "slots": _letters,
    "history": _letters,
    "view": _letters,
    "each query sees": _queries,
    "mask": _mask,
    "retained": int,
    "capacity": int,
    "bytes": int,
    "can rewind": _yes,
    "snapshot": _ranges,
    "drafted": int,
    "lengths": _numbers,
    "sequences": _numbers,
    "moved": _yes,
    "fingerprint": str,
    "sequence": int,
    "free": int,
    "references": _numbers,
    "gathered": _letters,
    "page": _letters,
    "held": int,
    "plan": _numbers,
    "fit": _numbers,
    "output": _outputs,
    "past": int,
    "bound": _bound,
    "key": int,
    "extent": _numbers,
    "rotated": _rotated,
    **dict.fromkeys(METERED, int),
}
"""The columns a table may have after `do`, and how a cell is read. Counts of the meter say at most how many."""

_WHICH: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    (r"([A-Z]) slots", r"state.\1", _letters),
    (r"([A-Z]) offset", r"offset.\1", int),
    (r"layer (\d+)", r"state.\1", _letters),
    (r"saved layer (\d+)", r"saved.\1", _letters),
    (r"layer (\d+), sequence (\d+)", r"batch.\1.\2", _letters),
    (r"sequence (\d+)", r"state.\1", _letters),
    (r"(host|handle) (\d+)", r"\1.\2", _letters),
    (r"table (\d+)", r"table.\1", _numbers),
    (r"output of ((?:layer|sequence|head) \d+)", r"output of \1", _outputs),
)
"""Columns for one of several: how they are headed, the observation they speak of, how a cell is read."""


def reader(column: str) -> Callable[[str], Any] | None:
    """How the cells of a column are read; None if there is no such column."""
    found = [read for head, _, read in _WHICH if re.fullmatch(head, column)]
    return COLUMNS.get(column) or (found[0] if found else None)


def observation(column: str) -> str | None:
    """The observation that a column for one of several speaks of: `layer 0` of state.0."""
    names = [re.sub(head, name, column) for head, name, _ in _WHICH if re.fullmatch(head, column)]
    return names[0] if names else None


def parse(text: str, where: str) -> tuple[Example, ...]:
    """All examples in a piece of a chapter. Raises BadInput."""
    return tuple(_example(m, where) for m in _EXAMPLE.finditer(text))


def _example(m: re.Match[str], where: str) -> Example:
    id_ = f"{m['clause']}.{m['n']}"
    columns = [c.strip() for c in m["head"].split("|")]
    unknown = [c for c in columns[1:] if reader(c) is None]
    if columns[0] != "do" or unknown:
        raise BadInput(f"{where}: {id_}: columns are do, {', '.join(COLUMNS)}; found {', '.join(columns)}")
    lines = [[c.strip() for c in line.strip().strip("|").split("|")] for line in m["body"].splitlines()]
    if any(len(line) != len(columns) for line in lines):
        raise BadInput(f"{where}: {id_}: every row needs {len(columns)} cells")
    try:
        trace = notation.trace(m["kind"], m["fields"], "; ".join(line[0] for line in lines))
        said = tuple(_row(columns[1:], line[1:]) for line in lines)
    except (BadInput, ValueError, KeyError) as e:
        raise BadInput(f"{where}: {id_}: {e}") from None
    return Example(id_, m["clause"], trace, said)


def _row(columns: list[str], cells: list[str]) -> Row:
    pairs = zip(columns, cells, strict=True)
    return Row({c: read(cell) for c, cell in pairs if cell and (read := reader(c))})
