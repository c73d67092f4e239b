"""Files that a user names, read up to a size: a wrong file does not fill the memory."""

from __future__ import annotations

from pathlib import Path

from kvspec.errors import BadInput

LARGEST = 64 << 20
"""Bytes a file may have by default."""


def read_bytes(path: str | Path, kind: str, largest: int = LARGEST) -> bytes:
    """Read a file; `kind` says in messages what it should be, such as "a log". Raises BadInput."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(largest + 1)
    except OSError as e:
        raise BadInput(f"{path}: cannot be read: {e.strerror or e}") from None
    if len(data) > largest:
        raise BadInput(f"{path}: {kind} has at most {largest} bytes; is this another file?")
    return data
