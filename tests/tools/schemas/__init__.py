"""The JSON schemas that are published in `kvspec/schemas`.

`python -m tools.schemas`, run in `tests/`, writes them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from importlib import resources
from inspect import cleandoc
from pathlib import Path
from typing import Any

from kvspec.records.asked import AskedRecord
from kvspec.records.difference import Difference
from kvspec.records.mutants import Matrix
from kvspec.records.profile import Profile
from kvspec.records.run import Record
from kvspec.records.serving import ServingRecord
from tools.schemas import trace, vectors, wire
from tools.schemas.records import schema

SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "question": wire.question,
    "answer": wire.answer,
    "describe": wire.describe,
    "trace": trace.schema,
    "vectors": vectors.schema,
    "record": partial(schema, Record, "record"),
    "profile": partial(schema, Profile, "profile"),
    "mutants": partial(schema, Matrix, "mutants"),
    "difference": partial(schema, Difference, "difference"),
    "serving": partial(schema, ServingRecord, "serving"),
    "asked": partial(schema, AskedRecord, "asked"),
}
"""Functions that make the schemas, by file name."""


def path(name: str) -> Path:
    """Give the file of a published schema."""
    return Path(str(resources.files("kvspec").joinpath("schemas", f"{name}.json")))


def text(name: str) -> str:
    """The text of a published schema. Releases of msgspec differ in how they indent what docstrings say."""
    return json.dumps(_cleaned(SCHEMAS[name]()), indent=1) + "\n"


def _cleaned(part: Any) -> Any:
    """The same part of a schema, its descriptions without the indentation of the code."""
    if isinstance(part, list):
        return [_cleaned(each) for each in part]
    if not isinstance(part, dict):
        return part
    said = part.get("description")
    cleaned = {"description": cleandoc(said)} if isinstance(said, str) else {}
    return {name: _cleaned(each) for name, each in part.items()} | cleaned
