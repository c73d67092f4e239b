"""The mutation matrix for a terminal."""

from __future__ import annotations

from tabulate import tabulate

from kvreports.mutants import numbers
from kvreports.safe_text import line
from kvspec.records.mutants import SOURCES, Matrix, MutantRecord, result

HEAD = ("mutant", "result", *SOURCES, "by", "operations", "right clause", "seconds")
MARKS = {True: "x", False: "-", None: ""}


def render(record: Matrix) -> str:
    """Every mutant a line, then the groups, then one sentence."""
    rows = tabulate([row(m) for m in record.mutants], HEAD, disable_numparse=True)
    groups = tabulate([g.row() for g in numbers.whole(record)], numbers.HEAD, disable_numparse=True)
    return f"{rows}\n\n{groups}\n\n{numbers.headline(record)}\n"


def row(m: MutantRecord) -> list[str]:
    """A mutant under `HEAD`."""
    return [
        line(m.id)[:100],
        result(m),
        *(MARKS[m.sources.get(s)] for s in SOURCES),
        " ".join(m.by[:3]),
        str(m.operations or ""),
        {True: "yes", False: "no", None: ""}[m.right],
        f"{m.seconds:.3f}",
    ]
