"""The traces as one C header, for engines whose tests are in C or C++."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from kvconform.vectors.languages.numbered_traces import Step, Trace, told, write

KINDS = ("append", "rewind", "reset")
"""Operations in the order of the header's enum."""


def header(chapters: Iterable[str] = ()) -> str:
    """Give the header with the traces of these chapters, or of all that it can have. Raises BadInput."""
    found = told(chapters)
    reader = resources.files(__package__).joinpath("reader.h").read_text(encoding="utf-8")
    return reader.replace("@SAID@", found.said).replace("@DATA@", _data(found.traces))


def write_header(path: Path, chapters: Iterable[str] = ()) -> str:
    """Write the header; give what it has in words. Raises BadInput."""
    text = header(chapters)
    write(path, text)
    return f"{path}: {text.count('    KVCONFORM_TRACE(')} traces"


def _data(traces: list[Trace]) -> str:
    """The table of traces, and the numbers that it points into."""
    numbers: list[int] = []
    lines = []
    for words, window, steps in traces:
        lines.append(f"    KVCONFORM_TRACE({json.dumps(words)}, {window}, {len(numbers)}, {len(steps)})")
        numbers += [number for step in steps for number in _step(step)]
    table = ",\n".join(lines)
    values = ",\n    ".join(", ".join(map(str, numbers[i : i + 24])) for i in range(0, len(numbers), 24))
    return (
        f"static const int kvconform_numbers[] = {{\n    {values}}};\n\n"
        f"static const kvconform_trace kvconform_traces[] = {{\n{table}}};"
    )


def _step(step: Step) -> list[int]:
    """Operation, argument, whether it is refused, offset; then of an append its rows, and what each query sees."""
    argument = len(step.rows) if step.op == "append" else step.to
    seen = [number for rows in step.sees for number in (len(rows), *rows)]
    given = [len(step.rows), *step.rows]
    return [KINDS.index(step.op), argument, int(step.refused), step.offset, *given, len(step.sees), *seen]
