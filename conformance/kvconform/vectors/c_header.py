"""Frozen traces of growing caches and rings as one C header, for engines whose tests are in C or C++.

A row is told by its number: the header holds no arrays, and says what each query of an append must see.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from kvconform.vectors import files
from kvspec.errors import BadInput
from kvspec.reading.clauses import digest

CHAPTERS = ("growing", "ring")
SOURCES = ("examples", "mutants")
"""Worked examples of clauses, and the shortest traces that show planted bugs."""

OPERATIONS = {"append": "KVCONFORM_APPEND", "rewind": "KVCONFORM_REWIND", "free": "KVCONFORM_RESET"}
OBSERVATIONS = ("open", "view", "ask")
"""Operations that change nothing after the first: they are left out."""

TOLD = {"op", "n", "to"}
"""What an operation may say: all else (other dtypes, a second cache, bits) cannot be told in row numbers."""


def header(chapters: Iterable[str] = ()) -> str:
    """Give the header with the traces of these chapters, or of all that it can have. Raises BadInput."""
    wanted = list(chapters) or list(CHAPTERS)
    if other := [c for c in wanted if c not in CHAPTERS]:
        raise BadInput(f"no C header has the chapter {other[0]!r}; there are {', '.join(CHAPTERS)}")
    found = [v for file in files.there(files.FROZEN, SOURCES, wanted) for v in files.read(file)["vectors"]]
    told = [v for v in found if all(map(_can_be_told, v["steps"]))]
    reader = resources.files(__package__).joinpath("c_reader.h").read_text(encoding="utf-8")
    said = f"{len(told)} of {len(found)} traces of {' and '.join(wanted)}; clauses {digest()}"
    return reader.replace("@SAID@", said).replace("@DATA@", _data(told))


def write(path: Path, chapters: Iterable[str] = ()) -> str:
    """Write the header; give what it has in words. Raises BadInput."""
    text = header(chapters)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise BadInput(f"{path}: cannot be written: {e.strerror}") from None
    return f"{path}: {text.count('    KVCONFORM_TRACE(')} traces"


def _can_be_told(step: dict[str, Any]) -> bool:
    """Masks of hundreds of rows are kept as tensors, which a header does not have."""
    mask = step["see"].get("mask") or {"bits": []}
    return set(step["op"]) <= TOLD and step["op"]["op"] in (*OPERATIONS, *OBSERVATIONS) and "bits" in mask


def _data(told: list[dict[str, Any]]) -> str:
    """The table of traces, and the numbers that it points into."""
    numbers: list[int] = []
    traces = []
    for vector in told:
        steps = [s for s in vector["steps"] if s["op"]["op"] in OPERATIONS]
        words = json.dumps(f"{vector['id']}: {vector['words']}")
        window = vector["config"].get("window") or 0
        traces.append(f"    KVCONFORM_TRACE({words}, {window}, {len(numbers)}, {len(steps)})")
        numbers += [number for step in steps for number in _step(step)]
    lines = [", ".join(map(str, numbers[i : i + 24])) for i in range(0, len(numbers), 24)]
    table = ",\n".join(traces)
    values = ",\n    ".join(lines)
    return (
        f"static const int kvconform_numbers[] = {{\n    {values}}};\n\n"
        f"static const kvconform_trace kvconform_traces[] = {{\n{table}}};"
    )


def _step(step: dict[str, Any]) -> list[int]:
    """Operation, argument, whether it is refused, offset; then of an append its rows, and what each query sees."""
    op, see = step["op"], step["see"]
    kind = list(OPERATIONS).index(op["op"])
    argument = op.get("n", op.get("to", 0))
    refused = see["result"] != "ok"
    body = list(_seen(step)) if kind == 0 and not refused else []
    rows = step.get("given", {}).get("rows", {}).get("rows", []) if kind == 0 else []
    given = [len(rows), *rows]
    return [kind, argument, int(refused), see["offset"], *given, len(body), *(n for seen in body for n in seen)]


def _seen(step: dict[str, Any]) -> Iterator[list[int]]:
    """How many rows each query sees, and which."""
    rows, mask = step["see"]["history"]["rows"], step["see"]["mask"]
    bits = mask["bits"] if mask else ["1" * len(rows)] * step["op"]["n"]
    for line in bits:
        seen = [row for row, bit in zip(rows, line, strict=True) if bit == "1"]
        yield [len(seen), *seen]
