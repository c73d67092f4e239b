"""The cases to profile, which `cases.toml` lists by their ids."""

from __future__ import annotations

import re
from typing import Any

from kvconform.profiling.case import Case
from kvconform.profiling.model_shapes import MODELS
from kvspec.errors import BadInput
from kvspec.geometry import LAYOUTS
from kvspec.tables import table

NUMBERS = {"n": "rows", "b": "batch", "p": "page"}
"""The fields of a case that an id gives as a letter and a number."""


def read(text: str) -> Case:
    """Read a case from its id."""
    operation, name, cast, context, *words = text.split("/")
    source, _, dtype = cast.rpartition("-")
    fields: dict[str, Any] = {"dtype": dtype, "source": source}
    for word in words:
        if word[1:].isdigit():
            fields[NUMBERS[word[0]]] = int(word[1:])
        else:
            fields["layout" if word in LAYOUTS else "pairing"] = word
    model = next(model for model in MODELS if model.id == name)
    return Case(operation, model, int(context), **fields)


def cases(quick: bool = False) -> tuple[Case, ...]:
    """Give every case in the order of measurement; or a few small ones, whose numbers say little."""
    return tuple(map(read, table(__package__, "cases")["quick" if quick else "table"]))


def selected(quick: bool, pattern: str | None) -> tuple[Case, ...]:
    """Select the cases whose id matches a pattern. Raises BadInput if it is not a regular expression or matches
    none."""
    every = cases(quick)
    try:
        found = tuple(case for case in every if re.search(pattern or "", case.id))
    except re.error as e:
        raise BadInput(f"--cases: {pattern!r:.60} is no regular expression ({e})") from None
    if not found:
        raise BadInput(
            f"--cases: no case matches {pattern!r:.60}; the first are {', '.join(c.id for c in every[:3])}"
        )
    return found
