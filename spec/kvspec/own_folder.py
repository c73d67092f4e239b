"""Folders that a command fills. What others left there is not written over."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from kvspec.errors import BadInput

BEGINNING = 1 << 16
"""Bytes of a file in which its mark is looked for."""


def demand_own(folder: Path, files: Iterable[str], mark: str, says: str = "") -> None:
    """Demand that none of these files is there, or that an earlier call of the command wrote them: then `mark` is
    there too, and its beginning says `says`. Raises BadInput."""
    found = [folder / name for name in files if os.path.lexists(folder / name)]
    if found and not _says(folder / mark, says):
        raise BadInput(f"{found[0]} would be lost, and kvconform did not write it; name a new or an empty folder")


def _says(path: Path, text: str) -> bool:
    try:
        with path.open("rb") as file:
            return text.encode() in file.read(BEGINNING)
    except OSError:
        return False
