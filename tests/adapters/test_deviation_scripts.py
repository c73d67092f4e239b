"""Each known deviation has a script of at most 25 lines that shows it by itself, and a draft carries its code."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tools import shown

LONGEST = 25
"""Lines of a script, without the text at its beginning."""


@pytest.mark.parametrize("script", shown.SCRIPTS)
def test_a_script_is_short_and_needs_its_engine_and_numpy_alone(script: str) -> None:
    code = shown.code(script)
    compile(code, script, "exec")
    assert len(code.splitlines()) <= LONGEST
    assert "expected: " in code and "seen: " in code and "sys.exit(" in code
    assert shown.imported(script) <= {"numpy"} | shown.ENGINES[script.partition("_")[0]]


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
    status, printed = shown.run("mlx_concatenate_trim", tmp_path)
    assert status == 1 and printed != shown.told()["mlx_concatenate_trim"]


def test_a_draft_without_a_place_for_the_code_is_refused() -> None:
    with pytest.raises(ValueError, match="has no block ```python"), redirect_stdout(io.StringIO()):
        shown.with_code("# A draft", "mlx_concatenate_trim", "")
