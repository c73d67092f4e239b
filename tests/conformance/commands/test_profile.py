"""`kvconform profile` and `kvconform report` of a profile, from end to end."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kvconform import cli
from kvprofile import cases, peers
from kvprofile.commands import profile as command
from kvprofile.workloads import cache
from kvspec.errors import BadInput
from support.slow import one_in

SCHEMA = json.loads(resources.files("kvspec").joinpath("schemas/profile.json").read_text(encoding="utf-8"))
FEW = ("--quick", "--memory", "1", "--peers", "numpy,memcpy")


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("adapter", "few"), one_in(2, [("reference", "append|rewind|zero|step"), ("opencl", "^append/.*")])
)
def test_a_profile_ends_with_a_record_and_pages(
    adapter: str, few: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "deep" / "report"
    options = ("profile", adapter, *FEW, "--cases", few, "--report", str(folder))
    assert cli.main(options) == 0
    out, err = capsys.readouterr()
    record = json.loads((folder / "profile.json").read_text())
    jsonschema.validate(record, SCHEMA)
    assert {p.name for p in folder.iterdir()} == {
        *("profile.json", "profile.html", "profile.md"),
        "journal.jsonl",
    }
    assert [m["id"] for m in record["measurements"]] == [c.id for c in cases.selected("quick", few)]
    assert record["skipped"] == [] and not record["partial"]
    assert {limit["name"] for limit in record["limits"]} == {"read", "write", "copy"}
    for found in record["measurements"]:
        assert found["host_ms"]["median"] > 0 and found["metered"]["device_to_host"] == 0
        assert (found["rate"] is None) == (found["operation"] == "rewind")
        assert {p["peer"] for p in found["peers"]} <= {"numpy", "memcpy"}
    assert f"kvconform: profiling {adapter}\n" in err and f"[1/{len(record['measurements'])}]" in err
    assert "append" in out and "of limit" in out
    for form in ("table", "json", "markdown"):
        assert cli.main(["report", str(folder / "profile.json"), "--format", form]) == 0
        assert "append" in capsys.readouterr().out
    assert cli.main(["report", str(folder / "profile.json"), "--html", str(tmp_path / "again.html")]) == 0
    assert (tmp_path / "again.html").read_text() == (folder / "profile.html").read_text()


@pytest.mark.slow
def test_rows_are_on_the_device_before_anything_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """What crosses to the device is nothing, though rows are appended, copied and stepped. Chunks of rings move the
    window, and some rows begin a page."""
    assert cli.main(["profile", "opencl", *FEW, "--cases", "append|copy|step", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["measurements"]
    assert len(found) >= 5 and {m["metered"]["host_to_device"] for m in found} == {0}
    others = [m for m in found if m["operation"] not in ("ring append", "page append")]
    assert {m["metered"]["launches"] for m in others} == {1}


def test_an_interrupt_leaves_a_partial_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(subject: Any, count: int, filled: Any = cache.filled) -> Any:
        if subject.case.rows > 1:
            raise KeyboardInterrupt
        return filled(subject, count)

    monkeypatch.setattr(cache, "filled", interrupted)
    options = ("profile", "reference", *FEW, "--cases", "^append", "--report", str(tmp_path), "--format", "json")
    assert cli.main(options) == 130
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads((tmp_path / "profile.json").read_text())
    assert record["partial"] and record["partial_reason"] == "interrupted after 1 of 2 cases"
    assert [m["rows"] for m in record["measurements"]] == [1]
    assert "Partial profile" in (tmp_path / "profile.html").read_text()


def test_a_profile_that_is_killed_loses_no_case_that_it_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The journal ends in the middle of a line, as where the system kills the process for its memory."""
    assert cli.main(["profile", "reference", *FEW, "--cases", "^append|zero", "--report", str(tmp_path)]) == 0
    whole = json.loads((tmp_path / "profile.json").read_text())
    *kept, last = (tmp_path / "journal.jsonl").read_text().splitlines()
    cut = tmp_path / "cut.jsonl"
    cut.write_text("\n".join([*kept, last[:40]]))
    capsys.readouterr()
    assert cli.main(["report", str(cut), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["partial"] and found["partial_reason"] == command.CUT
    assert found["measurements"] == whole["measurements"][:-1] != []
    assert [limit["name"] for limit in found["limits"]] == ["read", "write", "copy"] and found["clock"]
    jsonschema.validate(found, SCHEMA)
    for bad in ("", kept[1] + "\n", json.dumps({"event": "profile"}) + "\n"):
        cut.write_text(bad)
        assert cli.main(["report", str(cut)]) == 2
        assert f"{cut}: not the journal of a" in capsys.readouterr().err


def test_a_profile_in_which_nothing_was_measured_ends_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        cli.main(["profile", "support.fakes.adapters:Fake", *FEW, "--cases", "zero"])
        == command.NOTHING_MEASURED
        == 3
    )
    assert "the adapter does not declare store" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("referense",), "unknown adapter 'referense'; did you mean reference?"),
        (
            ("reference", "--peers", "numpy,scipy"),
            "unknown peer 'scipy'; known: numpy, memcpy, torch, index_copy_, onnxruntime",
        ),
        (("reference", "--cases", "("), "'(' is no regular expression"),
        (("reference", "--cases", "no such case"), "no case matches 'no such case'"),
        (("reference", "--rounds", "0"), "argument --rounds: it must be 1 or more"),
    ],
)
def test_bad_usage_ends_with_2(arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(("profile", *arguments)) == 2
    out, err = capsys.readouterr()
    assert out == "" and words in err


def test_an_adapter_that_cannot_run_ends_with_4(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["profile", "support.fakes.lies:NeedsADevice"]) == 4
    assert "cannot run here: there is no such device here" in capsys.readouterr().err


def test_at_most_two_profiles_are_rendered_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "profile.json"
    file.write_text('{"kvprofile": 2}')
    assert cli.main(["report", *[str(file)] * 3]) == 2
    assert "name one record of mutants or of a server, or one or two of profiles" in capsys.readouterr().err
    assert cli.main(["report", str(file)]) == 2
    assert "spec is missing" in capsys.readouterr().err


def test_a_peer_that_is_not_installed_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.PEERS, "torch", "no_such_module:Torch")
    found = peers.find(["numpy", "torch"])
    assert [p.name for p in found.peers] == ["numpy"]
    assert [bool(r.missing) for r in found.records] == [False, True]
    with pytest.raises(BadInput):
        peers.find(["nothing"])
