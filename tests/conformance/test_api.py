"""`kvconform.run`: an adapter judged from Python, and a record that shows itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import kvconform
from kvadapters.reference import Reference
from kvconform.api import name_of
from kvconform.commands.demo import ADAPTER as RING
from kvspec.errors import BadInput
from support.running.command_line import kvconform as command


def test_a_record_says_what_the_command_says(tmp_path: Path) -> None:
    seen = kvconform.run(RING, clauses=["RING-7"], quick=True, report=tmp_path)
    assert not seen.conforms and seen.exit_status == 1
    assert repr(seen).startswith("<") and "Does not conform (" in repr(seen)
    assert "rewind moves the offset but not the write cursor" in " ".join(str(seen).split())
    written = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))
    assert written["failures"] and (tmp_path / "report.html").exists()
    shown = command("run", RING, "--clause", "RING-7", "--quick").stdout
    assert shown.splitlines()[0] == str(seen).splitlines()[0]


def test_a_notebook_shows_the_report() -> None:
    seen = kvconform.run("reference", clauses=["RING-19"], processes=1, quick=True)
    assert seen.conforms and seen.summary["PASS"] == 1
    page = seen._repr_html_()
    assert page.startswith("<iframe srcdoc=") and "RING-19" in page and "<script" not in page  # escaped


def test_a_class_is_named_as_another_process_finds_it() -> None:
    assert name_of(Reference) == "kvadapters.reference:Reference"


class Local(Reference):
    pass


Local.__module__ = "__main__"

REFUSED = {
    "unknown adapter 'refrence'; did you mean reference": lambda: kvconform.run("refrence"),
    "unknown chapter 'rong'; did you mean ring": lambda: kvconform.run("reference", chapters=["rong"]),
    "chapters must be a list": lambda: kvconform.run("reference", chapters="ring"),
    "write its class into a file": lambda: kvconform.run(Local),
    "given by its class": lambda: kvconform.run(Reference()),  # type: ignore[arg-type]
    "given by its class or its name, not by ''": lambda: kvconform.run(""),
    "unknown adapter '--quick'": lambda: kvconform.run("--quick"),
    "clauses must be a list: clauses=": lambda: kvconform.run("reference", clauses=3),  # type: ignore[arg-type]
    "seed: 'x' is not a whole number": lambda: kvconform.run("reference", seed="x"),  # type: ignore[arg-type]
    "seed: '1000000000000000000000' is more than": lambda: kvconform.run("reference", seed=10**21),
    "processes: it must be 1 or more": lambda: kvconform.run("reference", processes=0),
    "processes: '2.5' is not": lambda: kvconform.run("reference", processes=2.5),  # type: ignore[arg-type]
    "report is the name of a file or a folder, not ''": lambda: kvconform.run("reference", report=""),
    "known is the name of a file or a folder, not 3": lambda: kvconform.run("reference", known=3),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_wrong_is_said(words: str) -> None:
    with pytest.raises(BadInput, match=words):
        REFUSED[words]()


def test_the_package_stays_light() -> None:
    code = "import sys, kvconform; print('numpy' in sys.modules, callable(kvconform.run))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
