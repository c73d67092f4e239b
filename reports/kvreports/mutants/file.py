"""Records of mutants as files: read with every check."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from kvreports.run import file as run_file
from kvreports.typed_dict_check import check
from kvspec.errors import BadInput
from kvspec.records.mutants import VERSION, Matrix

MARK = "kvmutants"
"""Only the record of mutants begins with it."""


def load(path: Path) -> Matrix:
    """Read a record. Raises BadInput that says what is wrong with the file."""
    document, where = run_file.document(run_file.text(path), str(path)), str(path)
    if not isinstance(document, dict) or document.get(MARK) != VERSION:
        raise BadInput(f"{where}: not the record of mutants of version {VERSION}")
    check(document, Matrix, where)
    return cast(Matrix, document)
