"""The columns of worked examples: their headings and how to read their cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from kvspec import notation
from kvspec.chapters.record import Column
from kvspec.registry import RECORDS
from kvspec.rows import serials

RESULT = Column("result", "refusal")
"""The one column that belongs to no chapter."""


def _letters(cell: str) -> list[int] | None:
    if cell == "none":
        return None
    return [] if cell == "empty" else [serials.serial(x) for x in cell.split()]


def _queries(cell: str) -> list[list[int]]:
    return [[] if q.strip() == "-" else sorted(serials.serial(x) for x in q.split()) for q in cell.split(",")]


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
    """Write the elements of an output as tables do, with four digits each."""
    return [f"{float(x):.4g}" for x in found]


def _outputs(cell: str) -> list[str]:
    return [] if cell == "empty" else numbers(cell.split(","))


def _mask(cell: str) -> Any:
    return None if cell == "none" else notation.operation(f"mask {cell}")["parts"]


def _rotated(cell: str) -> list[list[str]]:
    return [] if cell == "empty" else [numbers(row.split()) for row in cell.split(",")]


def _bound(cell: str) -> int | None:
    return None if cell == "none" else int(cell)


READERS: dict[str, Callable[[str], Any]] = {
    "refusal": _result,
    "offset": _offset,
    "number": int,
    "number or none": _bound,
    "count": int,
    "numbers": _numbers,
    "text": str,
    "truth": _yes,
    "letters": _letters,
    "fold": _letters,
    "queries": _queries,
    "mask": _mask,
    "ranges": _ranges,
    "outputs": _outputs,
    "rotated": _rotated,
}
"""Readers of cells, by what the column holds. A count of the meter is an upper bound."""


def _every() -> Iterator[tuple[Column, str | None]]:
    """Give every column, and the chapter that defines it."""
    yield RESULT, None
    yield from ((c, name) for name, record in RECORDS.items() for c in record.columns)


def every() -> list[str]:
    """Give the headings of all columns, as patterns."""
    return [c.heading for c, _ in _every()]


@cache
def _found(heading: str) -> tuple[Column, str | None] | None:
    return next((found for found in _every() if re.fullmatch(found[0].heading, heading)), None)


def known(heading: str) -> bool:
    """Tell whether there is such a column."""
    return _found(heading) is not None


def column(heading: str) -> Column:
    """Find the column with this heading. Raises KeyError if there is none."""
    if (found := _found(heading)) is None:
        raise KeyError(heading)
    return found[0]


def chapter(heading: str) -> str | None:
    """Give the chapter that defines the column; None if no chapter does."""
    found = _found(heading)
    return None if found is None else found[1]


def observation(heading: str) -> str:
    """Give the observation that a column shows: state.0 for `layer 0`."""
    of = column(heading).of
    return re.sub(column(heading).heading, of, heading) if of else heading


def read(heading: str, cell: str) -> Any:
    """Read a cell. Raises ValueError, KeyError or BadInput if it cannot be read."""
    return READERS[column(heading).reads](cell)
