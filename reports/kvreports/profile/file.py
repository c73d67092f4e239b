"""Records of profiles as files: read with every check, written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from kvreports.run import file as run_file
from kvreports.sanitised_text import cleaned
from kvreports.typed_dict_check import check
from kvspec.errors import BadInput
from kvspec.records.profile import VERSION, Profile

MARK = "kvprofile"
"""Only the record of a profile begins with it."""


def load(path: Path) -> Profile:
    """Read a record. Raises BadInput that says what is wrong with the file."""
    return from_json(run_file.document(run_file.text(path), str(path)), str(path))


def from_json(document: Any, where: str = "profile") -> Profile:
    """Check a document and return it. Raises BadInput."""
    if not isinstance(document, dict) or "kvprofile" not in document:
        raise BadInput(f"{where}: not the record of a profile (no kvprofile)")
    version = document["kvprofile"]
    if type(version) is not int or version != VERSION:
        raise BadInput(f"{where}: profile of version {version!r:.20}; this kvconform reads version {VERSION}")
    check(document, Profile, where)
    return cast(Profile, document)


def dumps(record: Profile) -> str:
    """The text of a file: one measurement a line, so that two of them can be compared."""
    return run_file.lines(record)


def plain(record: Profile) -> Profile:
    """A copy in which every text can be shown."""
    return cast(Profile, cleaned(record))
