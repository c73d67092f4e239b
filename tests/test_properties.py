"""The tests that `PROPERTIES.md` names are there, each in the file that it names, and none of them is skipped."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROWS = re.findall(r"^\| ([A-Z].+?) \| (`.+`) \|$", (HERE / "PROPERTIES.md").read_text(encoding="utf-8"), re.M)


@cache
def there(file: str) -> dict[str, list[str]]:
    """The tests of a file, each with the decorators that it has."""
    body = ast.parse((HERE / file).read_text(encoding="utf-8")).body
    return {f.name: [*map(ast.unparse, f.decorator_list)] for f in body if isinstance(f, ast.FunctionDef)}


def named(cell: str) -> list[tuple[str, str]]:
    """The tests that a cell names, each with its file: `file.py`: `test_a`, `test_b`; `other.py`: `test_c`."""
    groups = [re.findall(r"`([^`]+)`", group) for group in cell.split("; ")]
    return [(file, test) for file, *tests in groups for test in tests]


@pytest.mark.parametrize(("says", "cell"), ROWS, ids=[says[:60] for says, _ in ROWS])
def test_each_property_names_tests_that_are_there(says: str, cell: str) -> None:
    assert named(cell), f"nothing holds: {says}"
    missing = [f"{file}::{test}" for file, test in named(cell) if test not in there(file)]
    skipped = [
        test for file, test in named(cell) if re.search(r"\.(skip|xfail)\b", " ".join(there(file).get(test, ())))
    ]
    assert (missing, skipped) == ([], [])


def test_each_row_of_the_page_is_read() -> None:
    lines = (HERE / "PROPERTIES.md").read_text(encoding="utf-8").splitlines()
    assert len(ROWS) == sum(line.startswith("| ") for line in lines) - lines.count("| property | tests |")
    with pytest.raises(FileNotFoundError):
        there("no_such_file.py")
