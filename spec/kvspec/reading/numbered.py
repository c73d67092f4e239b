"""Reads chapters that stand beside those of caches: clauses numbered without a gap, each behind its anchor."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from kvspec.errors import BadInput

Clause = TypeVar("Clause", bound=Any)


def numbered(text: str, letters: str, clause: Callable[[str], Clause]) -> list[Clause]:
    """Read the clauses of a chapter, each by `clause` from its block. Raises BadInput where an id is missing, or a
    worked example cannot be read."""
    file = f"{letters.lower()}.md"
    clauses = [clause(block.partition("\n")[2]) for block in re.split(r"(?m)^(?=<a id=\")", text)[1:]]
    ids = [each.id for each in clauses]
    if ids != [f"{letters}-{n + 1}" for n in range(len(ids))]:
        raise BadInput(f"{file}: clauses are numbered from {letters}-1 without a gap; found {', '.join(ids)}")
    written = len(re.findall(r"^ *example\b", text, re.M | re.I))
    if written != (parsed := sum(len(each.examples) for each in clauses)):
        raise BadInput(f"{file}: {written} lines begin with Example, {parsed} of them can be read")
    return clauses
