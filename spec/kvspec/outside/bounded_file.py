"""Files that a user names, read up to a size: a wrong file does not fill the memory."""

from __future__ import annotations

from pathlib import Path

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
