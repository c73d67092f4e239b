"""`docs/engine.md`, followed word for word: its files are written and its commands run, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvconform import cli
from support.readers.followed_page import follow
from tools.floors import ROOT


@pytest.mark.slow  # eight commands, five of which judge a cache
def test_the_page_is_followed_to_its_end(tmp_path: Path) -> None:
    ran = follow(ROOT / "docs/engine.md", tmp_path)
    assert len(ran) == 11
    assert all("Conforms (" in out for out in ran[1:3])
    assert '"without": ["ask", "free", "rewind", "view"]}' in ran[3]
    assert 'model = "WIN-04/OwnRowNotCounted"' in ran[4], "the entry is proposed as the page has it"
    assert "kvconform replay 'ring kv_heads=1 window=1: append 1; append 1' --draw" in ran[4]
    assert "query 0 sees a b; expected b" in ran[6]
    assert all("Conforms, except for known deviations" in out for out in ran[7:9])


OTHER = '[[known]]\nclause = "RING-1"\nmodel = "WIN-04/OwnRowNotCounted"\nreason = "one row too wide"\n'


@pytest.mark.parametrize(
    ("keeps", "known", "status"),
    [("window - 2", "", 1), ("window - 2", OTHER, 1), ("window - 1", "", 0), ("window", OTHER, 0)],
)
def test_an_engine_that_has_tokens_alone_is_judged_by_its_log(
    keeps: str, known: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last part of the page, by itself; mended, the engine conforms. What is known of it is of its own bug."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kvconform.toml").write_text(known)
    code = (ROOT / "docs/engine.md").read_text(encoding="utf-8").partition("# log_it.py\n")[2].partition("```")[0]
    assert code.count("window - 2") == 1
    exec(code.replace("window - 2", keeps), {})
    assert cli.main(["check", "life.jsonl"]) == status
