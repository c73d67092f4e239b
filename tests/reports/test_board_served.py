"""Whole engines on the board: what was asked of them and what they did stands in a row; each bug is told once."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import pytest

from hostile.engine_faults import FAULTS
from kvconform import cli
from kvconform.commands import serving as command
from kvconform.commands.board import NOT_FILED, board
from kvconform.serving.run import Run
from kvreports.board import html, markdown
from kvreports.board.engines import Board
from kvspec.errors import BadInput
from support.engines import serving

ENTRY = """
[[served]]
{more}engine = "planted"
clause = ["SERVE-2", "SERVE-3", "SERVE-7"]
shows = "{shows}"
reason = "the key of a block leaves out the tokens before it"
sort = "wrong result"
script = "serving/no_parent"
"""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The records of the right engine and of a wrong one. What makes a failure short is counted, not timed."""
    folder = tmp_path_factory.mktemp("served")
    probe = str(folder / "probe")
    assert cli.main(["probe", "qwen3", "--layers", "full,window 6", "-o", probe]) == 0
    words = ["run", "--engine", f"{serving.__name__}:small", "--model", probe, "--requests", "40", "-q", "--report"]
    assert cli.main([*words, str(folder / "planted-right")]) == 3
    with FAULTS["prefix/no-parent"].planted(), pytest.MonkeyPatch.context() as patched:
        patched.setattr(command, "Run", partial(Run, seconds=math.inf))
        assert cli.main([*words, str(folder / "planted-wrong")]) == 1
    return [folder / f"planted-{name}" / "record.json" for name in ("right", "wrong")]


def made(records: list[Path], shows: str, more: str = "") -> Board:
    """The board, with a file of known deviations beside the records."""
    folder = records[0].parents[1]
    known = folder / "known.toml"
    known.write_text(ENTRY.format(shows=shows, more=more))
    (folder / "serving").mkdir(exist_ok=True)
    (folder / "serving" / "no_parent.py").touch()
    return board(records, known, folder)


def test_a_bug_that_is_filed_is_told_once_with_its_script_and_the_shortest_history(records: list[Path]) -> None:
    found = made(records, "query * of the * request, layer *")
    wrong, right = found.served
    assert (wrong.form, right.form, right.bugs) == ("planted-wrong", "planted-right", ())
    (bug,) = wrong.bugs
    assert (bug.sort, bug.script, bug.draft) == ("wrong result", "serving/no_parent.py", "")
    text, page = markdown.render(found), html.render(found)
    assert text.count("the key of a block leaves out the tokens before it") == 1
    assert "1 engine was judged whole, in 2 forms" in text and "Bugs: 1" in text
    for told in (bug.failures[0].history, "Whole engines", str(right.record.asked["requests"])):
        assert told in text and told in page


def test_what_was_not_exercised_stands_in_the_row(records: list[Path]) -> None:
    right = next(s for s in made(records, "query *").served if not s.bugs)
    assert right.unexercised and right.unexercised[0] in markdown.render(made(records, "query *"))
    assert right.row[3] == str(right.record.asked["requests"]) and right.reused.isdigit()


def test_a_failure_that_no_entry_explains_is_not_filed(records: list[Path]) -> None:
    wrong = made(records, "no such words").served[0]
    assert [bug.sort for bug in wrong.bugs] == [NOT_FILED.sort]


@pytest.mark.parametrize(("form", "sort"), [("planted-wrong", "wrong result"), ("planted-right", NOT_FILED.sort)])
def test_what_an_engine_does_in_one_form_explains_no_failure_of_another(
    form: str, sort: str, records: list[Path]
) -> None:
    wrong = made(records, "query *", f'form = "{form}"\n').served[0]
    assert [bug.sort for bug in wrong.bugs] == [sort]


def test_an_entry_that_would_explain_any_failure_is_refused(records: list[Path]) -> None:
    with pytest.raises(BadInput, match="fits any failure"):
        made(records, "*")
