"""What comes from outside: files, JSON and TOML, which may be wrong or mean harm, and names that are misspelt."""

from __future__ import annotations

import difflib
import json
import math
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from kvspec.errors import BadInput

LARGEST = 64 << 20
"""Bytes a file may have by default."""


def read_bytes(path: str | Path, kind: str, largest: int = LARGEST, hint: str = "") -> bytes:
    """Read a file; `kind` says in messages what it should be, such as "a log", and `hint` what writes one. Raises
    BadInput."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(largest + 1)
    except IsADirectoryError:
        raise BadInput(f"{path} is a folder; name {kind} in it") from None
    except OSError as e:
        raise BadInput(f"{path}: cannot be read: {e.strerror or e}{hint and f'; {hint}'}") from None
    if len(data) > largest:
        raise BadInput(f"{path}: {kind} has at most {largest} bytes; is this another file?")
    return data


LONGEST = 200
"""Characters of a name that is looked up; a longer one is no slip of the hand."""


def did_you_mean(name: object, known: Iterable[str], most: int = 3) -> str:
    """Give `; did you mean append or open?` with the names that are most like it; empty if none is like it. Names
    that differ only in their case are alike."""
    text, names = str(name)[:LONGEST], {n.lower(): n for n in reversed(list(known))}
    near = [names[n] for n in difflib.get_close_matches(text.lower(), names, most)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def read_json(text: str | bytes) -> Any:
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


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """Read a TOML file; `kind` says in messages what it should be. Raises BadInput."""
    data = read_bytes(path, kind)
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not TOML, which is text in UTF-8; is this another file?") from None
    except (ValueError, RecursionError) as e:
        raise BadInput(f"{path}: not complete TOML ({e})") from None
