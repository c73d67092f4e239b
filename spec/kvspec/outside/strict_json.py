"""JSON from outside, read strictly: each key stands once in an object, and each number is one that JSON has."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from kvspec.errors import BadInput


def loads(text: str | bytes) -> Any:
    """Read JSON. Raises BadInput for a key that stands twice, for NaN, for Infinity and for numbers beyond all
    floats; else ValueError or RecursionError, as `json.loads` does."""
    return _STRICT.decode(text if isinstance(text, str) else _decoded(text))


def _decoded(data: bytes) -> str:
    try:
        return data.decode(json.detect_encoding(data))
    except UnicodeDecodeError:
        raise ValueError("it is no text") from None


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its keys and values. Raises BadInput for a key that stands twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BadInput(f"the key {twice[:60]!r} stands twice in one object")
    return made


def _no_number(text: str) -> NoReturn:
    raise BadInput(f"{text} is no JSON number")


def _number(text: str) -> float:
    if math.isinf(value := float(text)):
        raise BadInput(f"{text:.20} is beyond all numbers")
    return value


_STRICT = json.JSONDecoder(object_pairs_hook=once_each, parse_constant=_no_number, parse_float=_number)
