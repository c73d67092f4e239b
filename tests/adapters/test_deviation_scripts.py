"""Each known deviation has a script of at most 25 lines that shows it by itself, and a draft carries its code."""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tools import shown

LONGEST = 25
"""Lines of a script, without the text at its beginning."""

WITH_POOLS = {"lmcache": 40, "sglang": 40, "vllm": 40}
"""Lines of a script that makes the pools of a scheduler or a store, by its folder."""

MANY = ("/senseless_sizes", "/buffer_of_no_rows")
"""How scripts end of which a row names several at once."""

CLAUSE = re.compile(r"\[([A-Z]+-\d+)\]\([^)]*#\1\)")
"""A clause that the page of deviations links to."""


def rows(text: str) -> Iterator[tuple[str, set[str]]]:
    """The column of clauses and the scripts of each row of a page of deviations."""
    for line in (line for line in text.splitlines() if line.startswith("| ")):
        cells = line.strip("| ").split(" | ")
        if CLAUSE.search(line) and len(cells) > 5:
            yield cells[1], set(re.findall(r"`([^`]*)`", cells[-1]))


def miscited(text: str) -> list[str]:
    """Columns that cite a clause twice, by a bare number, or that no known deviation of their scripts breaks."""
    known = tomllib.loads((shown.FOLDER / "kvconform.toml").read_text(encoding="utf-8"))
    entries = [e for e in (*known["known"], *known["served"]) if "script" in e]
    wrong = []
    for column, scripts in rows(text):
        cited, broken = CLAUSE.findall(column), set[str]()
        for entry in (e for e in entries if e["script"] in scripts):
            broken |= {entry["clause"]} if isinstance(entry["clause"], str) else set(entry["clause"])
        by_run = broken and "by reading" not in column and "by hand" not in column
        bare = re.search(r"\d", CLAUSE.sub("", column))
        if bare or len(cited) != len(set(cited)) or (by_run and not set(cited) <= broken):
            wrong.append(column)
    return wrong


@pytest.mark.parametrize("script", shown.SCRIPTS)
def test_a_script_is_short_and_needs_its_engine_and_numpy_alone(script: str) -> None:
    code = shown.code(script)
    compile(code, script, "exec")
    assert len(code.splitlines()) <= WITH_POOLS.get(script.partition("/")[0], LONGEST)
    assert "expected: " in code and "seen: " in code and "sys.exit(" in code
    assert shown.imported(script) <= {"numpy"} | shown.ENGINES[script.partition("/")[0]]


def test_the_page_tells_of_every_script_with_what_was_expected_and_seen() -> None:
    printed = shown.told()
    assert printed.keys() == shown.SCRIPTS.keys()
    assert shown.page(printed) == shown.PAGE.read_text(encoding="utf-8")
    assert [n for n, t in printed.items() if "\nexpected: " not in t or "\nseen: " not in t] == []


@pytest.mark.parametrize("name", shown.drafts())
def test_a_draft_carries_the_code_and_its_output(name: str) -> None:
    text = shown.drafts()[name].read_text(encoding="utf-8")
    assert shown.with_code(text, name, shown.told()[name]) == text


@pytest.mark.parametrize("script", shown.SCRIPTS)
def test_a_script_shows_what_the_page_says(script: str, tmp_path: Path) -> None:
    if not shown.can_run(script):
        pytest.skip("its engine is not installed, or is a server")
    assert shown.run(script, tmp_path) == (0, shown.told()[script])


def test_a_script_says_when_its_deviation_is_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache = pytest.importorskip("mlx_lm.models.cache", exc_type=ImportError).ConcatenateKVCache

    def trim(self: object, n: int) -> int:
        self.keys, self.values = self.keys[..., :-n, :], self.values[..., :-n, :]  # type: ignore[attr-defined]
        self.offset -= n  # type: ignore[attr-defined]
        return n

    monkeypatch.setattr(cache, "trim", trim)
    status, printed = shown.run("mlx/concatenate_trim", tmp_path)
    assert status == 1 and printed != shown.told()["mlx/concatenate_trim"]


def test_a_draft_without_a_place_for_the_code_is_refused() -> None:
    with pytest.raises(ValueError, match="has no block ```python"), redirect_stdout(io.StringIO()):
        shown.with_code("# A draft", "mlx/concatenate_trim", "")


def test_the_page_of_deviations_cites_what_their_scripts_break() -> None:
    text = (shown.FOLDER / "README.md").read_text(encoding="utf-8")
    told = set[str]().union(*(scripts for _, scripts in rows(text)))
    assert miscited(text) == []
    assert {name for name in shown.SCRIPTS if name not in told and not name.endswith(MANY)} == set()


@pytest.mark.parametrize(
    "column", ["[RING-1](c.md#RING-1), 3", "[RING-1](c.md#RING-1); [RING-1](c.md#RING-1)", "[RING-5](c.md#RING-5)"]
)
def test_a_column_that_cites_otherwise_is_found(column: str) -> None:
    row = f"| litgpt | {column} | `append 1` | what happens | after an error | `litgpt/half_written` |"
    right = row.replace(column, "[RING-1](c.md#RING-1), [RING-3](c.md#RING-3)")
    assert (miscited(row), miscited(right)) == ([column], [])
