"""Engines that were asked by a probe stand on the board: what they were asked, and what was wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.probe import test_model
from kvconform import cli
from kvconform.commands.board import board
from kvreports import json_file
from kvreports.board import html, markdown
from kvreports.board.asked import HEAD
from kvspec.errors import BadInput
from kvspec.records.asked import AskedRecord

ENGINES = ("loads", "too_wide")
"""The probe's own network, right and with a rewind that leaves a row too many."""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("asked")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("kvconform.commands.ask.MOST_TOKENS", 6)
        assert cli.main(["probe", "llama", "--layers", "full", "-o", str(folder / "probe")]) == 0
        for name, status in zip(ENGINES, (0, 1), strict=True):
            asked = ["ask", f"{test_model.__name__}:{name}", str(folder / "probe")]
            assert cli.main([*asked, "--report", str(folder / name)]) == status
    return [folder / name / "asked.json" for name in ENGINES]


@pytest.mark.must("a row for each, and what was wrong in it")
def test_each_has_a_row(records: list[Path]) -> None:
    found = board(records, None, records[0].parents[1])
    one, other = (dict(zip(HEAD[1:], one.row, strict=True)) for one in found.asked)
    assert [one[name] for name in ("computes in", "probe", "has")] == ["f32", "llama: full", "copy, rewind"]
    assert int(one["queries"]) > 10 and one["wrong"] == one["breaks"] == ""
    assert int(other["wrong"]) > 0 and "CACHE-8" in other["breaks"] and "rewind" in other[HEAD[-1]]


@pytest.mark.must("both forms of the board")
def test_the_board_tells_of_them(records: list[Path]) -> None:
    found = board(records, None, records[0].parents[1])
    for text in (markdown.render(found), html.render(found)):
        assert "2 engines were asked by a probe" in text and "Without a wrong answer: 1" in text
    empty = board([], None, records[0].parents[1])
    assert "asked by a probe" not in markdown.render(empty) + html.render(empty)


@pytest.mark.must("a record that is read again, and none that says other things")
def test_a_record_is_checked(records: list[Path]) -> None:
    made = json_file.load(records[1], AskedRecord)
    assert json_file.loads(json_file.dumps(made), AskedRecord) == made
    text = json_file.dumps(made).replace('"queries"', '"answers"')
    with pytest.raises(BadInput, match="answers"):
        json_file.loads(text, AskedRecord)
