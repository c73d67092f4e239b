"""The cases to profile, which `cases.toml` lists by their ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, Literal

from kvprofile.case import Case
from kvprofile.model_shapes import MODELS
from kvspec.errors import BadInput
from kvspec.forms import parsed
from kvspec.tables import table

NUMBERS = {"n": "rows", "b": "batch", "p": "page"}
"""The fields of a case that an id gives as a letter and a number."""

NAMED = {"head": "layout", "token": "layout", "norm": "pairing", "neox": "pairing"}
"""The fields that it gives by a word; every other word is a form, `-` for `/`."""


def read(text: str) -> Case:
    """Read a case from its id."""
    operation, name, cast, context, *words = text.split("/")
    source, _, dtype = cast.rpartition("-")
    fields: dict[str, Any] = {"dtype": dtype, "source": source}
    for word in words:
        if word[1:].isdigit():
            fields[NUMBERS[word[0]]] = int(word[1:])
        elif word in NAMED:
            fields[NAMED[word]] = word
        else:
            fields["form"] = word.replace("-", "/")
            parsed(fields["form"])  # raises what is wrong with it
    model = next(model for model in MODELS if model.id == name)
    return Case(operation, model, int(context), **fields)


Choice = Literal["table", "quick", "models"]
"""The lists of cases: the usual one, a few small cases whose numbers say little, and attention of current
models."""


def cases(choice: Choice = "table") -> tuple[Case, ...]:
    """Give every case of a list in the order of measurement."""
    listed = table(__package__, "cases")[choice]
    return tuple(map(read, _of_models(listed) if choice == "models" else listed))


def _of_models(lines: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Give the ids of a case for each model, context and ending of each line."""
    for line in lines:
        for name, context, ending in product(line["models"], line["contexts"], line["endings"]):
            yield "/".join(filter(None, (line["operation"], name, "bf16", str(context), ending)))


def selected(choice: Choice, pattern: str | None) -> tuple[Case, ...]:
    """Select the cases whose id matches a pattern. Raises BadInput if it is not a regular expression or matches
    none."""
    every = cases(choice)
    try:
        found = tuple(case for case in every if re.search(pattern or "", case.id))
    except re.error as e:
        raise BadInput(f"--cases: {pattern!r:.60} is no regular expression ({e})") from None
    if not found:
        raise BadInput(
            f"--cases: no case matches {pattern!r:.60}; the first are {', '.join(c.id for c in every[:3])}"
        )
    return found
