"""Run records as files: read with every check, written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, cast

from kvreports.typed_dict_check import check
from kvspec.errors import BadInput
from kvspec.records.run import VERDICTS, VERSION, Record

LARGEST_FILE = 64 << 20
"""Bytes a record file may have."""


def load(path: str | Path) -> Record:
    """Read a record. Raises BadInput that says what is wrong with the file and what to do."""
    return loads(text(path), str(path))


def text(path: str | Path) -> bytes:
    """What a file holds, if it can be a record's. Raises BadInput."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as e:
        raise BadInput(f"{path}: cannot be read: {e.strerror or e}") from None
    if len(data) > LARGEST_FILE:
        raise BadInput(f"{path}: a run record has at most {LARGEST_FILE} bytes; is this another file?")
    return data


def loads(data: str | bytes, where: str = "record") -> Record:
    """Read a record from the text of a file. Raises BadInput."""
    return from_json(document(data, where), where)


def document(data: str | bytes, where: str) -> Any:
    """The JSON of a file. Raises BadInput where it is none."""
    try:
        return json.loads(data, parse_constant=_no_number)
    except RecursionError:
        raise BadInput(f"{where}: nested too deeply for a run record") from None
    except ValueError as e:
        raise BadInput(f"{where}: not complete JSON ({e}); was the file cut off?") from None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def from_json(document: Any, where: str = "record") -> Record:
    """Check a document and return it. Raises BadInput."""
    if not isinstance(document, dict) or "kvrecord" not in document:
        raise BadInput(f"{where}: not a run record (no kvrecord); `kvconform run --report DIR` writes one")
    version = document["kvrecord"]
    if type(version) is not int or version != VERSION:
        raise BadInput(f"{where}: run record of version {version!r:.20}; this kvconform reads version {VERSION}")
    check(document, Record, where)
    for part in ("clauses", "failures"):
        for i, item in enumerate(document[part]):
            if item["verdict"] not in VERDICTS:
                raise BadInput(f"{where}.{part}[{i}]: unknown verdict {item['verdict']!r:.40}")
    return cast(Record, document)


def begins(path: Path, mark: str) -> bool:
    """Whether a file looks like a record that begins with this field, whatever is wrong with it otherwise."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return f'"{mark}"' in file.read(200)
    except OSError:
        return False


def dumps(record: Record) -> str:
    """The text of a record file: one clause, failure, or field a line, so that two of them can be compared."""
    return lines(record)


def lines(record: Mapping[str, Any]) -> str:
    """A document, one field or item of a field a line."""
    return "{\n" + ",\n".join(f"{json.dumps(k)}: {_value(v)}" for k, v in record.items()) + "\n}\n"


def _value(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(json.dumps(v, allow_nan=False) for v in value) + "\n]"
    return json.dumps(value, allow_nan=False)


def dump(record: Record, path: str | Path) -> None:
    """Write a record. Raises BadInput; then there is no file, or the one that was there before."""
    write(path, dumps(record))


def write(path: str | Path, text: str) -> None:
    """Write a report whole or not at all. Raises BadInput that says what could not be written, and why."""
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
