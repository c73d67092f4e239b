"""Records as JSON files: checked when read, written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kvreports.safe_text import line, plain, shortened
from kvspec.errors import BadInput
from kvspec.outside import read_bytes, read_json
from kvspec.records.document import Document

DEEPEST = 64
"""How deep a record may nest."""

Kind = TypeVar("Kind", bound=Document)


def load(path: str | Path, kind: type[Kind]) -> Kind:
    """Read a record from a file. Raises BadInput: one line that says what is wrong with the file."""
    if Path(path).is_dir():
        raise BadInput(f"{path} is a folder; name a file in it, such as {Path(path) / 'record.json'}")
    return loads(read_bytes(path, kind.NAME, hint=f"`{kind.WRITTEN_BY}` writes one"), kind, str(path))


def loads(data: str | bytes, kind: type[Kind], where: str = "record") -> Kind:
    """Read a record from the text of a file. Raises BadInput."""
    try:
        document = read_json(data)
    except RecursionError:
        raise BadInput(f"{where}: nested too deeply for {kind.NAME}") from None
    except BadInput as e:
        raise BadInput(f"{where}: {e}") from None
    except ValueError as e:
        raise BadInput(f"{where}: not complete JSON ({e}); was the file cut off, or is it another?") from None
    return from_json(document, kind, where)


def from_json(document: Any, kind: type[Kind], where: str = "record") -> Kind:
    """Check a document and make the record of it, with today's ids of clauses. Raises BadInput."""
    from kvspec.records.older_records import (
        led_on,
    )  # reads several kinds of records; a run reads none

    mark, version = tag(kind)
    if not isinstance(document, dict) or mark not in document:
        raise BadInput(f"{where}: not {kind.NAME} (no {mark}); `{kind.WRITTEN_BY}` writes one")
    if type(document[mark]) is not int or document[mark] != version:
        raise BadInput(
            f"{where}: {kind.NAME} of version {document[mark]!r:.20}; this kvconform reads version {version}"
        )
    if _depth(document) > DEEPEST:
        raise BadInput(f"{where}: {kind.NAME} is nested at most {DEEPEST} deep")
    try:
        read: Kind = led_on(msgspec.convert(document, kind))
    except msgspec.ValidationError as e:
        raise BadInput(refusal(str(e), where)) from None
    return read


def tag(kind: type[Document]) -> tuple[str, Any]:
    """The field that a record begins with, and its value: the version."""
    return str(kind.__struct_config__.tag_field), kind.__struct_config__.tag


def begins(path: Path, kind: type[Document]) -> bool:
    """Whether a file looks like a record of this kind, even if something in it is wrong."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return f'"{tag(kind)[0]}"' in file.read(200)
    except OSError:
        return False


def _depth(value: Any) -> int:
    """How deep JSON nests; counted without recursion."""
    depth, level = 0, [value]
    while level and depth <= DEEPEST:
        inner = [v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)]
        level = [item for items in inner for item in items]
        depth += bool(inner)
    return depth


WORDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
"""The types of JSON, as messages name them."""


def refusal(message: str, where: str) -> str:
    """What msgspec says about a document, with the place first: `record.seconds: expected a number, found a
    text`."""
    parts = re.fullmatch(r"(.*?)(?: - at (?:`key` in )?`\$(.*)`)?", message, re.DOTALL)
    said, place = parts.groups("") if parts else (message, "")
    for pattern, words in (
        (r"^Object missing required field `(.*)`", r"\1 is missing"),
        (r"^Object contains unknown field `(.*)`", r"unknown field '\1'"),
        (r"^Invalid enum value", f"unknown {place.rpartition('.')[2]}"),
        (r"^Expected", "expected"),
        (r"^(expected .*), got", r"\1, found"),
    ):
        said = re.sub(pattern, words, said, flags=re.DOTALL)
    said = re.sub(r"`([^`]*)`", lambda m: " or ".join(WORDS.get(t, t) for t in m[1].split(" | ")), said)
    return f"{where}{place}: {shortened(line(plain(said)), 200)}"


def dumps(record: Document) -> str:
    """The text of a record file. Each field or item of a list has a line of its own, so that two records can be
    compared."""
    document = msgspec.to_builtins(record)
    return "{\n" + ",\n".join(f"{json.dumps(k)}: {_value(v)}" for k, v in document.items()) + "\n}\n"


def _value(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(json.dumps(v, allow_nan=False) for v in value) + "\n]"
    return json.dumps(value, allow_nan=False)


def write(path: str | Path, text: str) -> None:
    """Write a file whole or not at all. Raises BadInput that says what could not be written, and why."""
    path = Path(path)
    beside = path.with_name(f".{path.name[:60]}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as e:
        why = e.strerror or str(e)
        raise BadInput(f"{path}: cannot be written: {why}; name a folder that exists and can be written") from None
    finally:
        with suppress(OSError):
            beside.unlink()
