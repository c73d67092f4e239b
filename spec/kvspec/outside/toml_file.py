"""TOML files that a user names."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from kvspec.errors import BadInput
from kvspec.outside.bounded_file import read_bytes


def read(path: Path, kind: str) -> dict[str, Any]:
    """Read a TOML file; `kind` says in messages what it should be. Raises BadInput."""
    data = read_bytes(path, kind)
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not TOML, which is text in UTF-8; is this another file?") from None
    except (ValueError, RecursionError) as e:
        raise BadInput(f"{path}: not complete TOML ({e})") from None
