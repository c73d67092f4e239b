"""The demo: a ring with one bug, judged in seconds; without the bug it conforms."""

from __future__ import annotations

import json
import re
import sys
import webbrowser
from pathlib import Path

import pytest

from kvconform.commands import broken_ring, demo, run
from kvconform.runner.record import sarif
from kvreports import json_file
from kvreports.run import text as run_text
from kvspec.reading.clauses import index
from kvspec.records.run import Record
from support.running import command_line
from support.running.command_line import kvconform
from support.samples.record_samples import failing
from tools import demo_picture
from tools.floors import ROOT

MOST_OPERATIONS = 1000
"""Operations that the demo may judge: it must end within ten seconds, which no test can time on a busy machine."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of its report, and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    done = kvconform("demo", "--report", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"report at {folder}/report.html" in done.stderr
    return folder, done.stdout


def test_it_names_the_clause_and_the_bug_and_draws_the_shortest_trace(shown: tuple[Path, str]) -> None:
    folder, out = shown
    record = json_file.load(folder / "record.json", Record)
    assert "Diagnosis: your cache behaves like one with a stale cursor." in out
    assert "Look first at CACHE-8: FAIL, wrong row" in out
    assert record.failures[0].words == "ring kv_heads=1 window=2: append 1; rewind 0; append 1"
    assert sum(coverage.operations for coverage in record.coverage.values()) < MOST_OPERATIONS
    assert "What is wrong" in (folder / "report.html").read_text()


@pytest.mark.parametrize("columns", [80, 140])
def test_the_last_screen_of_a_terminal_holds_the_answer(columns: int, shown: tuple[Path, str]) -> None:
    """24 lines, of which the command line writes the last four: the report's place, and what to do next."""
    printed = run_text.render([json_file.load(shown[0] / "record.json", Record)], index(), columns).splitlines()
    assert max(len(line) for line in printed if not line.startswith("kvconform ")) <= columns
    screen = [line[i : i + columns] for line in printed for i in range(0, len(line) or 1, columns)][-20:]
    answers = ("broken-ring: Does not conform (", "QUICK RUN, which left out: ", "kvconform explain CACHE-8")
    at = [next(i for i, line in enumerate(screen) if line.startswith(words)) for words in answers]
    assert at == sorted(at) and any(line.startswith("!  3  append 1") for line in screen[: at[0]])
    assert sum(line.startswith("QUICK RUN") for line in printed) == 1
    assert not [line for line in printed if re.search(r"\b[A-Z]{3,}-$", line)]


def test_its_sarif_names_files_of_the_report(shown: tuple[Path, str]) -> None:
    (run,) = json.loads((shown[0] / sarif.NAME).read_text(encoding="utf-8"))["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert places and all((shown[0] / place["artifactLocation"]["uri"]).is_file() for place in places)


def test_the_picture_of_the_readme_is_of_this_failure(shown: tuple[Path, str]) -> None:
    record = json_file.load(shown[0] / "record.json", Record)
    assert demo_picture.PICTURE.read_text(encoding="utf-8") == demo_picture.picture(record), "nox -s demo draws it"


def test_the_readme_quotes_what_the_demo_prints(shown: tuple[Path, str]) -> None:
    """Every part of the block, in order, however wide the terminal is; `...` stands for what is left out."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = text[text.index("    $ kvconform demo\n") :].partition("\n\n")[0].partition("\n")[2]
    parts = [" ".join(part.split()) for part in block.split("    ...\n") if part.strip()]
    printed = " ".join(shown[1].replace("-\n  ", "-").split())
    at = [printed.find(part.replace("stale- cursor", "stale-cursor")) for part in parts]
    assert len(parts) == 4 and -1 < at[0] < at[1] < at[2] < at[3], (parts, shown[1])


def test_without_its_bug_the_ring_conforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(broken_ring.__file__).read_text()
    assert text.count("        self.offset -= n\n") == 1
    mended = text.replace(
        "        self.offset -= n\n",
        "        self.offset -= n\n        if n:\n            self.cursor = self.offset\n",
    )
    (tmp_path / "mended.py").write_text(mended)
    monkeypatch.chdir(tmp_path)
    status, record, _ = command_line.run("mended:ring", "--quick", "--traces", "2")
    assert status == 0 and record.failures == [] and record.summary["PASS"] > 10


@pytest.mark.parametrize(
    ("environment", "terminal", "opened"),
    [
        ({"DISPLAY": ":0"}, True, True),
        ({"DISPLAY": ":0"}, False, False),
        ({}, True, False),
        ({"DISPLAY": ":0", "CI": "1"}, True, False),
    ],
)
def test_the_page_is_opened_for_somebody_at_a_screen(
    environment: dict[str, str], terminal: bool, opened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    assert demo.interactive(environment) == opened


@pytest.mark.parametrize(("arguments", "pages"), [((), 1), (("--no-open",), 0)])
def test_a_browser_is_asked_once_and_not_where_it_is_not_wanted(
    arguments: tuple[str, ...], pages: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    monkeypatch.setattr(webbrowser, "open", asked.append)
    monkeypatch.setattr(demo, "interactive", lambda _: True)
    monkeypatch.setattr(run, "main", lambda _: failing().exit_status)
    assert kvconform("demo", "--report", tmp_path, *arguments).returncode == 0
    assert asked == [(tmp_path / "report.html").as_uri()] * pages
