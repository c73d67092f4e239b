"""`run --watch`: a change of a file judges again; nothing else does."""

from __future__ import annotations

import os
import signal
import subprocess
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

from kvconform import cli
from kvconform.commands import run, watch
from kvspec.errors import BadInput, CannotRun
from support import fakes
from support.running import command_line
from support.running.waiting import soon


def options(*words: str, process: tuple[str, ...] = ()) -> Namespace:
    read = cli.parser().parse_args(["run", *words, "--watch", "-q"])
    read.process = process
    return read


def rewritten(path: Path) -> None:
    path.write_text(f"{path.read_text()}\n")


def watching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], object]
) -> tuple[int, list[Exception | int]]:
    """Watch a folder: each pause between two looks is one of these steps, and the last is Ctrl-C. Gives the status,
    and what each run ended with."""
    (tmp_path / "my_ring.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    left, ends = list(steps), list[Exception | int]([1, BadInput("half written"), CannotRun("no device"), 0])
    told = list[Exception | int]()

    def pause(_: float) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    def judge(_: Namespace) -> int:
        told.append(ends[len(told)])
        if isinstance(told[-1], Exception):
            raise told[-1]
        return told[-1]

    monkeypatch.setattr(watch.time, "sleep", pause)
    return watch.main(options("my_ring:ring"), judge), told


def nothing() -> None:
    """A pause in which no file changes."""


def test_without_a_change_it_judges_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, told = watching(tmp_path, monkeypatch, nothing, nothing, nothing)
    assert (status, told) == (1, [1])


def test_each_change_judges_again_and_an_error_waits_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def change() -> None:
        rewritten(tmp_path / "my_ring.py")

    status, told = watching(tmp_path, monkeypatch, change, nothing, change, nothing, change, nothing)
    assert status == 0 and len(told) == 4
    err = capsys.readouterr().err
    assert "half written" in err and "cannot run here: no device" in err


def test_files_that_still_change_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change() -> None:
        rewritten(tmp_path / "my_ring.py")

    assert len(watching(tmp_path, monkeypatch, change, change, change)[1]) == 1
    assert len(watching(tmp_path, monkeypatch, change, change, change, nothing)[1]) == 2


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("other.py", True),
        ("inner/kernel.cu", True),
        ("kvconform.toml", True),
        ("notes.md", False),
        (".git/x.py", False),
        ("__pycache__/x.py", False),
        ("report/x.py", False),
    ],
)
def test_sources_are_watched_and_nothing_else(name: str, seen: bool, tmp_path: Path) -> None:
    for path in (tmp_path / "my_ring.py", tmp_path / name):
        path.parent.mkdir(exist_ok=True)
        path.write_text("x = 1\n")
    found = watch.files([tmp_path], tmp_path / "report")
    assert set(found) == {tmp_path / "my_ring.py", *([tmp_path / name] if seen else [])}


def test_a_folder_of_nothing_or_of_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="no source files"):
        watch.files([tmp_path])
    for n in range(3):
        (tmp_path / f"a{n}.py").touch()
    monkeypatch.setattr(watch, "MOST_FILES", 2)
    with pytest.raises(BadInput, match="more than 2 files"):
        watch.files([tmp_path])


def test_the_package_of_the_adapter_is_watched_wherever_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, here = tmp_path / "elsewhere" / "my_engine", tmp_path / "here"
    package.mkdir(parents=True)
    here.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('it is not imported')\n")
    (here / "engine").touch()
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(package.parent)
    (package.parent / "my_file.py").touch()
    assert watch.watched(options("my_file:ring")) == [here, package.parent / "my_file.py"]
    assert watch.watched(options("my_engine.caches:ring")) == [here, package]
    assert watch.watched(options("reference"))[1].name == "kvadapters"
    assert watch.watched(options(process=("./engine", "--kv"))) == [here, here / "engine"]
    assert set(watch.files([here, here / "engine"])) == {here / "engine"}, "a program has no ending"
    assert watch.watched(options("there_is_none:ring")) == [here]


@pytest.mark.parametrize(("given", "quick"), [((), True), (("--no-quick",), False), (("--quick",), True)])
def test_it_is_quick_unless_that_is_refused(
    given: tuple[str, ...], quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[bool]()
    monkeypatch.setattr(watch, "main", lambda options, _: seen.append(run.settings_of(options).quick) or 0)
    assert run.main(options("reference", *given)) == 0 and seen == [quick]
    assert not run.settings_of(cli.parser().parse_args(["run", "reference"], Namespace(process=()))).quick


def test_a_file_that_is_mended_is_judged_again_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    sound, file, out = (
        "from kvadapters.reference import Reference as Mine\n",
        tmp_path / "mine.py",
        tmp_path / "out",
    )
    file.write_text("from kvadapters.reference import (\n")
    words = ("run", "mine:Mine", "--watch", "-q", "--clause", "GROW-1", "--processes", "1")
    with out.open("w") as written:
        running = subprocess.Popen(
            command_line.command(*words),
            cwd=tmp_path,
            env=fakes.environment(),
            stdout=written,
            stderr=written,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    try:
        assert soon(lambda: "mine:Mine: " in out.read_text() and "SyntaxError" in out.read_text()), out.read_text()
        file.write_text(sound)
        assert soon(lambda: "reference: Conforms" in out.read_text()), out.read_text()
        os.kill(running.pid, signal.SIGINT)
        assert running.wait(20) == 0 and "Traceback" not in out.read_text()
    finally:
        running.kill()
        running.wait()
