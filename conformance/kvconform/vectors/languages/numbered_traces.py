"""The traces that are told in row numbers, and what each step must show."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from kvconform.vectors import files
from kvspec.errors import BadInput
from kvspec.reading.clauses import digest

CHAPTERS = ("growing", "ring")
SOURCES = ("examples", "mutants")
"""Worked examples of clauses, and the shortest traces that show planted bugs."""

OPERATIONS = {"append": "append", "rewind": "rewind", "free": "reset"}
"""What the readers call each operation."""

OBSERVATIONS = ("open", "view", "ask")
"""Operations that change nothing after the first: they are left out."""

SAYS = {"op", "n", "to"}
"""What an operation may say: all else (other dtypes, a second cache, bits) cannot be told in row numbers."""


class Step(NamedTuple):
    """One operation, and what must be seen after it: `sees` has the rows of each query of an append."""

    op: str
    rows: list[int]
    to: int
    refused: bool
    offset: int
    sees: list[list[int]]


class Trace(NamedTuple):
    """A trace on one cache; `window` is 0 where it keeps every row."""

    words: str
    window: int
    steps: list[Step]


class Told(NamedTuple):
    """Traces, and in words which they are."""

    said: str
    traces: list[Trace]


def told(chapters: Iterable[str] = ()) -> Told:
    """Give the traces of these chapters, or of all that can be told in row numbers. Raises BadInput."""
    wanted = list(chapters) or list(CHAPTERS)
    if other := [c for c in wanted if c not in CHAPTERS]:
        raise BadInput(f"row numbers cannot tell the chapter {other[0]!r}; there are {', '.join(CHAPTERS)}")
    found = [v for file in files.there(files.FROZEN, SOURCES, wanted) for v in files.read(file)["vectors"]]
    traces = [_trace(v) for v in found if "form" not in v["config"] and all(map(_can_be_told, v["steps"]))]
    said = f"{len(traces)} of {len(found)} traces of {' and '.join(wanted)}; clauses {digest()}"
    return Told(said, traces)


def write(path: Path, text: str) -> None:
    """Write a file, and the folders that it needs. Raises BadInput."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise BadInput(f"{path}: cannot be written: {e.strerror}") from None


def _can_be_told(step: dict[str, Any]) -> bool:
    """Masks of hundreds of rows are kept as tensors, which the readers do not have."""
    mask = step["see"].get("mask") or {"bits": []}
    return set(step["op"]) <= SAYS and step["op"]["op"] in (*OPERATIONS, *OBSERVATIONS) and "bits" in mask


def _trace(vector: dict[str, Any]) -> Trace:
    steps = [_step(s) for s in vector["steps"] if s["op"]["op"] in OPERATIONS]
    return Trace(f"{vector['id']}: {vector['words']}", vector["config"].get("window") or 0, steps)


def _step(step: dict[str, Any]) -> Step:
    op, see = step["op"], step["see"]
    appends, refused = op["op"] == "append", see["result"] != "ok"
    rows = step.get("given", {}).get("rows", {}).get("rows", []) if appends else []
    sees = _seen(step) if appends and not refused else []
    return Step(OPERATIONS[op["op"]], rows, op.get("to", 0), refused, see["offset"], sees)


def _seen(step: dict[str, Any]) -> list[list[int]]:
    """The rows that each query sees."""
    rows, mask = step["see"]["history"]["rows"], step["see"]["mask"]
    bits = mask["bits"] if mask else ["1" * len(rows)] * step["op"]["n"]
    return [[row for row, bit in zip(rows, line, strict=True) if bit == "1"] for line in bits]
