"""A log: operations of an engine with its observations, one line of JSON each, to be judged without an adapter.

A line with `kvtrace` begins a life: its kind, its config, and the `adapter`, which describes itself as on the wire.
Each further line is an operation with what was `given` and what was to `see`, as in a vector. Rows have names in
the place of serials: whatever the engine calls them, as long as it is the same for the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvspec.contract import Description, description
from kvspec.errors import BadInput
from kvspec.operations.table import TAKES_QUERIES, TAKES_ROWS
from kvspec.outside import read_bytes, read_json
from kvspec.registry import CACHES
from kvspec.trace import Trace, from_json, used_chapters

NUMBERS = (*TAKES_QUERIES, "rotate")
"""Operations that give numbers, which no name stands for."""

Name = int | str | None
"""What an engine calls a row; null for a row of zeros."""

Line = dict[str, Any]


@dataclass(frozen=True)
class Life:
    """The lines between one opening of cache A and the next: operations, and the observations after each."""

    adapter: Description
    trace: Trace
    lines: tuple[Line, ...]
    """One for each operation of the trace."""
    first: int
    """The number of its first line in the file."""

    def where(self, i: int) -> str:
        """Give the place of operation i, for messages."""
        return f"line {self.first + 1 + i}"


def read(path: Path) -> list[Life]:
    """Read all lives of a log. Raises BadInput that names the line and what it lacks."""
    groups: list[tuple[int, list[Line]]] = []
    for number, line in _lines(path):
        if "kvtrace" in line:
            groups.append((number, [line]))
        elif groups:
            groups[-1][1].append(line)
        else:
            raise BadInput(f"{path}, line {number}: a log begins with kvtrace, kind, config and adapter")
    if not groups:
        raise BadInput(f"{path}: an empty log")
    try:
        lives = [_life(number, *group) for number, group in groups]
    except BadInput as e:
        raise BadInput(f"{path}, {e}") from None
    for life in lives:
        if life.adapter != lives[0].adapter:
            raise BadInput(f"{path}, line {life.first}: not the adapter of line 1; a log has one adapter")
    return lives


def _lines(path: Path) -> Iterator[tuple[int, Line]]:
    data = read_bytes(path, "a log")
    lines = data.splitlines()
    for number, text in enumerate(lines, 1):
        shown = repr(text[:60].decode("utf-8", "replace"))
        try:
            line = read_json(text)
        except BadInput as e:
            raise BadInput(f"{path}, line {number}: {e}") from None
        except (ValueError, RecursionError):
            cut = number == len(lines) > 1 and not data.endswith(b"\n")
            hint = "; it ends in the middle: remove this line, and the others are judged" if cut else ""
            raise BadInput(f"{path}, line {number}: not JSON: {shown}{hint}") from None
        if not isinstance(line, dict):
            raise BadInput(f"{path}, line {number}: expected an object, found {shown}")
        yield number, line


def _life(first: int, head: Line, *lines: Line) -> Life:
    for i, line in enumerate(lines, first + 1):
        if not isinstance(line.get("op"), dict) or not isinstance(line.get("see"), dict):
            raise BadInput(f"line {i}: expected an object with op and see; it holds {', '.join(line) or 'nothing'}")
        given = line.get("given", {})
        if not isinstance(given, dict) or not isinstance(given.get("rows", {}), dict):
            raise BadInput(f'line {i}: expected "given": {{"rows": {{"rows": [names]}}}}, found {given!r:.60}')
    try:
        adapter = description(head.get("adapter"))
        trace = from_json(
            {n: x for n, x in head.items() if n != "adapter"} | {"ops": [line["op"] for line in lines]}
        )
        _demand_judgeable(adapter, trace)
    except BadInput as e:
        raise BadInput(f"line {first}: {e}") from None
    for i, line in enumerate(lines, first + 1):
        _demand_names(line, f"line {i}")
    return Life(adapter, trace, lines, first)


def _demand_judgeable(adapter: Description, trace: Trace) -> None:
    """Refuse chapters that are not claimed, and what cannot be told by names of rows."""
    missing = sorted(used_chapters(trace) - set(adapter.chapters))
    if missing:
        raise BadInput(f"{adapter.name} does not claim {', '.join(missing)}, which the log uses")
    kinds = {trace.kind, *(op["kind"] for op in trace.ops if op.get("kind"))} - set(CACHES)
    numbers = sorted({op["op"] for op in trace.ops} & set(NUMBERS))
    if kinds or numbers:
        told = f"{', '.join(sorted(kinds))} caches" if kinds else f"{', '.join(numbers)}, which gives numbers"
        raise BadInput(f"a log can hold {' and '.join(CACHES)} caches, with rows by name; it cannot hold {told}")


def _demand_names(line: Line, where: str) -> None:
    """Refuse an operation that writes rows and does not name each of them."""
    op = line["op"]
    if op["op"] not in TAKES_ROWS:
        return
    names = line.get("given", {}).get("rows", {}).get("rows")
    if not isinstance(names, list) or len(names) != op["n"]:
        raise BadInput(
            f'{where}: {op["op"]} {op["n"]} needs "given": {{"rows": {{"rows": [...]}}}}, a name for each row'
        )
    if not all(isinstance(name, int | str) for name in names):
        raise BadInput(f"{where}: the name of a row is a text or a whole number")
