"""The README: nothing stands there that is not so.

`test_links` follows its links, `test_demo` the demo and its picture, `test_engine_page` the commands for an engine.
"""

from __future__ import annotations

import re
import shlex

import pytest

from kvconform import cli
from kvreports.run.standing import score
from kvspec.contract import CHAPTERS
from kvspec.reading.clauses import index
from support.running import judging
from tools.floors import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BOARD = (ROOT / "reports/published/engines/README.md").read_text(encoding="utf-8")
PROSE = " ".join(README.split())
MOST_WORDS = 1200


def blocks(text: str) -> list[str]:
    """The lines of code of a page."""
    return re.findall(r"^ {4}(.*)$", text, re.M)


def cells(line: str) -> list[str]:
    """The cells of a row of a table, links as their labels."""
    return [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", cell.strip()) for cell in line.strip().strip("|").split("|")]


def test_it_is_read_in_a_few_minutes() -> None:
    assert len(README.split()) <= MOST_WORDS


def commands() -> list[str]:
    """Every command line of ours in the README and on the page of commands, without its remark."""
    lines = [
        line.removeprefix("$ ")
        for page in ("README.md", "docs/commands.md")
        for line in blocks((ROOT / page).read_text())
    ]
    parts = [part.strip() for line in lines for part in line.partition("#")[0].split("&&")]
    return [part for part in parts if part.startswith("kvconform ")]


@pytest.mark.parametrize("command", commands())
def test_every_command_is_one(command: str) -> None:
    _, *arguments = shlex.split(command)
    cli.parser().parse_args(arguments)


def test_the_commands_page_has_every_command_and_every_option_of_run() -> None:
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `kvconform ([a-z-]+)", page, re.M))
    assert named == set(cli.COMMANDS)
    known = set(
        re.findall(
            r"(?<![\w-])--?[a-z][a-z-]*", cli.parser()._subparsers._group_actions[0].choices["run"].format_help()
        )
    )  # type: ignore[union-attr,index,call-overload]
    row = next(line for line in page.splitlines() if line.startswith("| `kvconform run ADAPTER`"))
    assert {option.split()[0] for option in re.findall(r"`(--?[a-z][^`]*)`", row)} <= known


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "docs/guides/sessions.md", "docs/how-it-works.md"]
)
def test_every_session_that_is_named_is_one(page: str) -> None:
    noxfile, data = ((ROOT / name).read_text(encoding="utf-8") for name in ("noxfile.py", "tests/sessions.toml"))
    names = {
        *re.findall(r"^def ([a-z]\w*)\(session", noxfile, re.M),
        *re.findall(r"^\[(?:commands|engines|serving|sanitizers)\.([\w-]+)\]", data, re.M),
    }
    said = re.findall(r"nox -s ([\w-]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert (said or page == "docs/how-it-works.md") and set(said) <= names


def test_the_two_commands_that_set_up_a_checkout_are_those_of_ci() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for session, line in (
        ("opencl", "python3 -m pip install nox && python3 -m nox -s opencl"),
        ("tests", "python3 -m nox -s tests"),
    ):
        assert any(block.startswith(line) for block in blocks(README)) and re.search(
            rf"^ *run {session}\b", ci, re.M
        )


def test_the_figures_are_those_of_the_spec() -> None:
    assert f"{len(CHAPTERS)} chapters, {len(index())} clauses" in PROSE
    growing = sum(clause.claimed(["growing"]) for clause in index().values())
    (said,) = re.findall(r"\*Conforms \((.*?)\)\*", PROSE)
    assert said == f"{growing} of {growing} clauses it claims, 1 of {len(CHAPTERS)} chapters"
    assert score(judging.judged("Fake")).startswith(f"{growing} of {growing} clauses it claims")


def test_the_rows_of_the_board_are_the_boards() -> None:
    headline = re.search(r"^(\d+ caches were judged, \d+ of them without a bug)", BOARD, re.M)
    assert headline and headline[1] in PROSE
    board = {row[0]: row for row in map(cells, BOARD.splitlines()) if len(row) > 5}
    rows = [cells(line) for line in README.splitlines() if line.startswith("| ") and not line.startswith("| cache")]
    assert len(rows) >= 3
    for name, *said in rows:
        version, holds, _, _, wrong, *others = board[name][1:10]  # without choices
        assert said == [version, holds, wrong or "0", str(sum(int(count or 0) for count in others))]


def test_the_languages_are_those_of_the_examples() -> None:
    folders = {folder.name for folder in (ROOT / "docs" / "examples" / "engines").iterdir() if folder.is_dir()}
    assert {
        "c",
        "rust",
        "javascript",
        "python",
    } <= folders and "examples in C, Rust, JavaScript and Python" in PROSE
