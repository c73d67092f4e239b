"""The published schemas of the records, made from the structs: their types, and the texts under their fields."""

from __future__ import annotations

import ast
import inspect
import sys
from itertools import pairwise
from typing import Any

from msgspec import Struct
from msgspec.json import schema_components

from kvspec.records.document import Document
from tools.schemas.trace import DRAFT


def schema(kind: type[Document], name: str) -> dict[str, Any]:
    """The JSON schema of a record; `name` is that of its file."""
    _, parts = schema_components([kind], ref_template="#/$defs/{name}")
    for part, text in parts.items():
        _describe(text, getattr(sys.modules[kind.__module__], part))
    return {
        "$schema": DRAFT,
        "$id": f"kvconform:{name}",
        **parts.pop(kind.__name__),
        "title": f"kvconform: {kind.NAME}",
        "$defs": parts,
    }


def _describe(part: dict[str, Any], kind: type[Struct]) -> None:
    names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    for name, text in field_texts(kind).items():
        part["properties"][names[name]] = {"description": text, **part["properties"][names[name]]}


def field_texts(kind: type[Struct]) -> dict[str, str]:
    """The text under each field of a struct, in one line."""
    (made,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(made, ast.ClassDef)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(made.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and field.target.id in kind.__struct_fields__
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
