"""`[tool.kvconform]` in a project's pyproject.toml: read by `run`, `smoke` and pytest; wrong keys are told."""

from __future__ import annotations

import re
import subprocess
import sys
import unittest
from pathlib import Path

import pytest

from kvconform import cli, testcase
from kvconform.runner import project_file
from kvspec.errors import BadInput
from support.running import judging

FAULTY = "support.fakes.adapters:AcceptsAnyRewind"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", judging.fakes.environment()["PYTHONPATH"])
    return tmp_path


def settings(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(f'[project]\nname = "x"\n\n[tool.kvconform]\n{text}\n')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("quik = true", "unknown key 'quik'; did you mean quick?"),
        ("nonsense = 1", "unknown key 'nonsense'; known: adapter, command"),
        ("quick = 1", "quick must be true or false, is 1"),
        ("seed = -1", "seed must be a whole number from 0 on, is -1"),
        ("seed = true", "seed must be a whole number from 0 on, is True"),
        ("seed = 99999999999999", "seed must be a whole number"),
        ("minutes = 0", "minutes must be a number from 0.001 on, is 0"),
        ("minutes = inf", "minutes must be a number"),
        ('chapters = "ring"', "chapters must be a list of texts, is 'ring'"),
        ("chapters = []", "chapters must be a list of texts, is []"),
        ('adapter = ""', "adapter must be a text, is ''"),
        ('adapter = "reference"\ncommand = ["engine"]', "give either adapter or command"),
        ("quick = ", "not complete TOML"),
        ("a = " + "[" * 5000, "not complete TOML"),
    ],
)
def test_what_it_cannot_say_ends_with_2_and_names_the_file(
    text: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings(folder, text)
    assert cli.main(["run", "reference"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and "pyproject.toml: " in err and words in err


@pytest.mark.parametrize("text", ["", "[tool]\nkvconform = 3", "[tool.ruff]\nline-length = 100", "tool = 1"])
def test_a_file_without_the_table_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    if "= 3" in text:
        with pytest.raises(BadInput, match=r"\[tool.kvconform\] must be a table"):
            project_file.read(tmp_path)
    else:
        assert project_file.read(tmp_path) == {}
    assert project_file.read(tmp_path / "nowhere") == {}


def test_a_run_takes_what_the_command_line_leaves_open_and_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings(folder, f'adapter = "{FAULTY}"\nquick = true\nclauses = ["CACHE-7"]\nprocesses = 1\nreport = "out"')
    assert cli.main(["run", "-q"]) == 1 and "1 broken" in capsys.readouterr().out
    assert (folder / "out" / "record.json").is_file() and (folder / "out" / "badge.svg").is_file()
    assert cli.main(["run", "--clause", "CACHE-7", "--report", "other"]) == 1
    out, err = capsys.readouterr()
    assert f"kvconform: from pyproject.toml: adapter {FAULTY}, quick, processes 1\n" in err
    assert "QUICK RUN" in out and (folder / "other").is_dir()
    assert cli.main(["run", "reference", "--no-quick", "--clause", "MEM-17", "--traces", "1"]) == 0
    out, err = capsys.readouterr()
    assert "from pyproject.toml: processes 1, report out\n" in err and "QUICK RUN" not in out


@pytest.mark.slow
def test_a_command_of_an_engine_may_be_set(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = f'["{sys.executable}", "-m", "kvadapters.serve", "support.fakes.adapters:Fake"]'
    settings(folder, f'command = {engine}\nclauses = ["GROW-1"]\nquick = true')
    assert cli.main(["run"]) == 0
    assert cli.main(["run", "reference"]) == 0
    assert "judging reference\n" in capsys.readouterr().err


def test_smoke_takes_the_adapter_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(folder, 'adapter = "support.fakes.adapters:Fake"\nquick = true\nseed = 3')
    assert cli.main(["smoke"]) == 0
    assert "from pyproject.toml: adapter support.fakes.adapters:Fake\n" in capsys.readouterr().err


def test_a_run_that_may_take_no_time_is_partial(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(folder, 'adapter = "reference"\nchapters = ["mask"]\nminutes = 0.001\nprocesses = 1')
    assert cli.main(["run"]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "PARTIAL RUN: stopped after 0.001 minutes, as it was asked to; checks left: " in said
    assert re.search(r" example \d+, moved \d+, explore \d+, cover \d+, large \d+$", said)


def pytest_in(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "kvconform.plugin"]
    return subprocess.run(
        [*command, "--pyargs", "kvconform.checks", *more],
        env={**judging.fakes.environment(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.slow
def test_pytest_takes_them_and_shows_the_drawing_of_a_failure(tmp_path: Path) -> None:
    settings(tmp_path, f'adapter = "{FAULTY}"\nclauses = ["CACHE-7"]\nquick = true\nreport = "out"')
    done = pytest_in(tmp_path, "-k", "example", "-v")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"kvconform: judging {FAULTY}\n" in done.stdout
    assert f"kvconform: from pyproject.toml: adapter {FAULTY}, clauses CACHE-7, quick, report out" in done.stdout
    assert "!  1  rewind 1" in done.stdout and "[found ok]" in done.stdout
    assert (tmp_path / "out" / "record.json").is_file()
    settings(tmp_path, f'adaptr = "{FAULTY}"')
    wrong = pytest_in(tmp_path)
    assert wrong.returncode == 4 and "unknown key 'adaptr'; did you mean adapter?" in wrong.stderr


class Sound(testcase.ConformanceTestCase):
    adapter, clauses = "reference", ("GROW-1",)


class Faulty(testcase.ConformanceTestCase):
    adapter, clauses = FAULTY, ("CACHE-7",)


class NoDevice(testcase.ConformanceTestCase):
    adapter = "support.fakes.lies:NeedsADevice"


class Unnamed(testcase.ConformanceTestCase):
    pass


CASES = (Sound, Faulty, NoDevice, Unnamed, testcase.ConformanceTestCase)
for each in CASES:
    each.__test__ = False  # type: ignore[attr-defined]  # pytest leaves them to the test below


@pytest.mark.slow
def test_unittest_fails_where_a_clause_broke_and_draws_it(folder: Path) -> None:
    told: dict[type, list[str]] = {}
    for case in CASES:
        result = unittest.TestResult()
        case("test_conforms").run(result)
        told[case] = [text for _, text in (*result.failures, *result.errors, *result.skipped)]
    assert told[Sound] == []
    (found, whole) = told[Faulty]
    assert "!  1  rewind 1" in found and "taken though refused" in found
    assert "Does not conform: 0 of 1" in whole
    assert "the adapter cannot run here: there is no such device" in told[NoDevice][0]
    assert "Unnamed.adapter must name an adapter" in told[Unnamed][0]
    assert told[testcase.ConformanceTestCase] == ["it is a base: a subclass names the adapter"]
