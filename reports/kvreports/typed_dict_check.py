"""Whether a document has the shape of a TypedDict: the types are the check, so it cannot drift."""

from __future__ import annotations

import math
import types
from functools import cache
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from kvspec.errors import BadInput

DEEPEST = 64
"""How deep the parts may nest whose shape is free."""
NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def check(value: Any, wanted: Any, where: str) -> None:
    """Raises BadInput that names the place."""
    origin, inner = get_origin(wanted), get_args(wanted)
    if is_typeddict(wanted):
        _fields(value, wanted, where)
    elif origin is list:
        _right(isinstance(value, list), where, "a list", value)
        for i, item in enumerate(value):
            check(item, inner[0], f"{where}[{i}]")
    elif origin is dict:
        _right(isinstance(value, dict), where, "an object", value)
        for key, item in value.items():
            check(item, inner[1], f"{where}.{key:.40}")
    elif origin in (Union, types.UnionType):
        if value is not None:
            check(value, next(t for t in inner if t is not types.NoneType), where)
    elif wanted is Any:
        _right(depth(value) <= DEEPEST, where, f"nested at most {DEEPEST} deep", "deeper")
    else:
        _right(_is(value, wanted), where, NAMES[wanted], value)


def _fields(value: Any, wanted: Any, where: str) -> None:
    _right(isinstance(value, dict), where, "an object", value)
    known = fields(wanted)
    for name, (hint, required) in known.items():
        if name in value:
            check(value[name], hint, f"{where}.{name}")
        elif required:
            raise BadInput(f"{where}: {name} is missing")
    for name in value:
        if name not in known:
            raise BadInput(f"{where}: unknown field {name!r:.60}")


@cache
def fields(wanted: Any) -> dict[str, tuple[Any, bool]]:
    """The fields of a TypedDict: the type of each, and whether it must be there."""
    hints = get_type_hints(wanted, include_extras=True)
    out = {}
    for name, hint in hints.items():
        optional = get_origin(hint) is NotRequired
        out[name] = (get_args(hint)[0] if optional else hint, not optional)
    return out


def _is(value: Any, wanted: type) -> bool:
    if wanted is float:
        return type(value) in (int, float) and math.isfinite(value)
    return type(value) is wanted


def depth(value: Any) -> int:
    """How deep JSON nests; counted without recursion."""
    deep, level = 0, [value]
    while level and deep <= DEEPEST:
        inner = [v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)]
        level = [item for items in inner for item in items]
        deep += bool(inner)
    return deep


def _right(holds: bool, where: str, wanted: str, found: Any) -> None:
    if not holds:
        raise BadInput(f"{where}: expected {wanted}, found {found!r:.60}")
