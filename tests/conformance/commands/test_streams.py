"""A status never depends on who reads what a command prints, and a report touches nothing that is not its own."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kvconform import cli
from kvconform.commands import list as list_command
from kvconform.runner.record import report_folder
from kvreports import json_file
from kvspec.errors import BadInput
from support.running.command_line import command, kvconform
from support.samples import logs
from support.slow import one_in

HEAD = logs.head(
    "ring",
    {"batch": 1, "kv_heads": 1, "k_dim": 4, "v_dim": 4, "dtype": "f16", "step": 8, "window": 3},
    chapters={"ring": "visible"},
)
APPEND = {
    "op": {"op": "append", "n": 1},
    "given": {"rows": {"rows": ["å"]}},
    "see": {"result": "ok", "offset": 1, "history": {"rows": ["ø"]}},
}

READERS = {
    "a pipe that is closed": "{} | true; exit ${{PIPESTATUS[0]}}",
    "a pipe that is closed, on standard error": "{} 2> >(exec true); exit $?",
    "no standard output": "{} >&-",
    "no stream at all": "{} <&- >&- 2>&-",
    "an encoding without the letters": "PYTHONIOENCODING=ascii {}",
    "a full disk": "{} > /dev/full",
}


@pytest.fixture(name="broken")
def _broken(tmp_path: Path) -> Path:
    """A log of a ring that breaks a clause."""
    return logs.write(tmp_path / "log.jsonl", HEAD, APPEND)


@pytest.mark.parametrize(
    ("words", "status", "reader"),
    one_in(
        2,
        [
            *(("check LOG", 1, reader) for reader in READERS),
            ("list clauses", 0, "a full disk"),
            ("explain RING-99", 2, "a full disk"),
        ],
    ),
)
def test_the_status_is_the_same_for_every_reader(words: str, status: int, reader: str, broken: Path) -> None:
    called = [str(broken) if word == "LOG" else word for word in words.split()]
    done = subprocess.run(
        ["bash", "-c", READERS[reader].format(shlex.join(command(*called)))], capture_output=True, timeout=60
    )
    expected = 3 if reader == "a full disk" and status != 2 else status
    assert done.returncode == expected, done.stderr.decode()
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr


def test_a_report_is_written_though_standard_output_is_full(broken: Path) -> None:
    report = broken.parent / "report"
    called = shlex.join(command("check", str(broken), "--report", str(report)))
    done = subprocess.run(["bash", "-c", f"{called} > /dev/full"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and done.stderr.count("No space left on device") == 1
    assert "the harness failed" not in done.stderr
    assert {"record.json", "junit.xml", "report.html"} <= {file.name for file in report.iterdir()}


def test_no_text_commands_the_terminal() -> None:
    done = subprocess.run(command("check", "no\x1b[2Jfile\u202e"), capture_output=True, timeout=60)
    assert done.returncode == 2 and done.stderr.decode().startswith(
        "kvconform: no\ufffd[2Jfile\ufffd: cannot be read"
    )


def test_what_nobody_expected_is_the_harness_failing_in_one_line(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(list_command, "main", lambda options: {}["a\nb"])
    assert cli.main(["list"]) == 3
    (told,) = capsys.readouterr().err.splitlines()
    assert "the harness failed: KeyError at test_streams.py:" in told and "KVCONFORM_TRACEBACK=1" in told
    monkeypatch.setenv("KVCONFORM_TRACEBACK", "1")
    assert cli.main(["list"]) == 3 and "Traceback" in capsys.readouterr().err


def test_the_result_is_printed_though_its_report_cannot_be_written(broken: Path, monkeypatch: Any) -> None:
    def full(*given: Any) -> Path:
        raise BadInput("record.json: cannot be written (No space left on device)")

    monkeypatch.setattr(report_folder, "write", full)
    done = kvconform("check", broken, "--report", broken.parent / "report")
    assert done.returncode == 3 and "Look first at RING-1: FAIL" in done.stdout and "No space left" in done.stderr


def test_a_report_deletes_only_the_traces_of_the_report_before_it(broken: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    assert kvconform("check", broken, "--report", report).returncode == 1
    (mine := report / "failures" / "99-mine.json").write_text("{}")
    (old,) = set((report / "failures").iterdir()) - {mine}
    right = json.loads(json.dumps(APPEND).replace("\\u00f8", "\\u00e5"))
    assert kvconform("check", logs.write(broken, HEAD, right), "--report", report).returncode == 0
    assert mine.exists() and not old.exists()


def test_a_report_never_follows_a_link(broken: Path, tmp_path: Path) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (report := tmp_path / "report").mkdir()
    (kept := elsewhere / "record.json").write_text("precious")
    (report / "record.json").symlink_to(kept)
    assert kvconform("check", broken, "--report", report).returncode == 1
    (report / "failures").rename(tmp_path / "moved")
    (report / "failures").symlink_to(elsewhere)
    done = kvconform("check", broken, "--report", report)
    assert done.returncode == 3 and "failures: is a link" in done.stderr
    assert kept.read_text() == "precious" and list(elsewhere.iterdir()) == [kept]


def test_a_run_on_a_full_disk_keeps_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """/dev/full takes the place of the journal and of the record: each write fails as on a full disk."""
    opened = Path.open
    full = ("journal.jsonl",)

    def on_a_full_disk(path: Path, *args: Any, **more: Any) -> Any:
        return opened(Path("/dev/full"), "w") if path.name in full else opened(path, *args, **more)

    monkeypatch.setattr(Path, "open", on_a_full_disk)
    monkeypatch.setattr(json_file, "write", full_disk)
    run = ("run", "reference", "--clause", "GROW-1", "--quick", "--report", str(tmp_path / "report"))
    assert cli.main([*run]) == 3
    out, err = capsys.readouterr()
    assert "Conforms" in out and "No space left on device" in err and "goes on without its journal" in err
    assert "the report is not written" in err and "Traceback" not in err


def full_disk(path: str | Path, text: str) -> None:
    raise BadInput(f"{path}: cannot be written: No space left on device")


def test_a_journal_takes_the_place_of_a_link(tmp_path: Path) -> None:
    (kept := tmp_path / "kept").write_text("precious")
    (report := tmp_path / "report").mkdir()
    (report / "journal.jsonl").symlink_to(kept)
    assert kvconform("run", "no-such", "--report", report).returncode == 2
    assert kvconform("run", "reference", "--clause", "GROW-1", "--quick", "--report", report).returncode == 0
    assert kept.read_text() == "precious" and not (report / "journal.jsonl").is_symlink()


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM"])
def test_a_terminal_that_closes_is_an_interruption(name: str, monkeypatch: Any, capsys: Any) -> None:
    def ended(options: Any) -> int:
        for _ in range(3):
            signal.raise_signal(getattr(signal, name))
        return 0

    monkeypatch.setattr(list_command, "main", ended)
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_DFL)  # these tests may run under nohup
    assert cli.main(["list"]) == 130 and capsys.readouterr().err == "kvconform: interrupted\n"


def test_what_nohup_ignores_stays_ignored(monkeypatch: Any) -> None:
    monkeypatch.setattr(list_command, "main", lambda options: signal.raise_signal(signal.SIGHUP) or 0)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert cli.main(["list"]) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
