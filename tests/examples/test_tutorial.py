"""`docs/tutorial.md`, followed word for word: each step shows what the page says, and the last ring conforms."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.readers.followed_page import follow
from tools.floors import ROOT


@pytest.mark.slow  # six runs of the suite
def test_the_tutorial_ends_with_a_conforming_ring(tmp_path: Path) -> None:
    printed = follow(ROOT / "docs/tutorial.md", tmp_path)
    assert len(printed) == 8
    assert ["Conforms" in out for out in printed] == [False, False, False, False, True, False, False, True]


PAGE = """
```python
# a.py
class A:
    def one(self):
        return 1

    def two(self):
        return 2
```
```python
# a.py, in place of one
    def one(self):
        return 11
```
```python
# a.py, at the end
    def three(self):
        return 3
```
"""


def test_a_file_is_changed_as_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE)
    assert follow(tmp_path / "page.md", tmp_path) == []
    names: dict[str, type] = {}
    exec((tmp_path / "a.py").read_text(), names)
    made = names["A"]()
    assert (made.one(), made.two(), made.three()) == (11, 2, 3)


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        ("```sh\nkvconform list clauses  # exit status 1\n```\n", "list clauses"),
        ("```sh\nkvconform --help\n```\n```text\nno such words\n```\n", "is not printed"),
        ("```python\n# a.py\nx = 1\n```\n```python\n# a.py, in place of y\n```\n", "0 such methods"),
    ],
)
def test_a_page_that_says_what_is_not_so_is_found(block: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(block)
    with pytest.raises(AssertionError, match=fault):
        follow(tmp_path / "page.md", tmp_path)
