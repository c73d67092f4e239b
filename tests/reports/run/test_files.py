"""Record files: what goes in comes out, what is not a record is refused in a line, nothing is left half done."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from kvreports import json_file
from kvspec.errors import BadInput
from kvspec.outside import LARGEST
from kvspec.records.run import Record
from reports.run.test_schema import put
from support.samples.record_samples import SAMPLES, failing, passing
from tools import check_in_browser


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda r: r.adapter["name"])
def test_a_record_survives_its_file(sample: Any, tmp_path: Path) -> None:
    json_file.write(tmp_path / "r.json", json_file.dumps(sample))
    assert json_file.load(tmp_path / "r.json", Record) == sample
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_a_file_has_a_line_a_clause() -> None:
    lines = json_file.dumps(failing()).splitlines()
    assert sum(line.startswith('{"id": ') for line in lines) == len(failing().clauses)


WHOLE = json_file.dumps(passing())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "was the file cut off"),
        (WHOLE[:-40], "was the file cut off"),
        ("\x00\xff", "was the file cut off"),
        ('{"kvtrace": 2}', "not a run record"),
        ("[]", "not a run record"),
        (WHOLE.replace('"kvrecord": 2', '"kvrecord": 1'), "version 1; this kvconform reads version 2"),
        (WHOLE.replace('"kvrecord": 2', '"kvrecord": true'), "version True"),
        (WHOLE.replace('"partial": false,\n', ""), "partial is missing"),
        (WHOLE.replace('"seconds": 41.7', '"seconds": "41.7"'), "seconds: expected a number"),
        (WHOLE.replace('"seconds": 41.7', '"seconds": NaN'), "NaN is no JSON number"),
        (WHOLE.replace('"seconds": 41.7', '"seconds": 1e999'), "1e999 is beyond all numbers"),
        (re.sub(r',\n"memory": .*?}', "", WHOLE), "memory is missing"),
        (WHOLE.replace('"memory"', '"memories"'), "unknown field 'memories'"),
        (WHOLE.replace('"memory"', '"more": 1, "memory"'), "unknown field 'more'"),
        (WHOLE.replace('"PASS", "judged_at"', '"GOOD", "judged_at"'), "unknown verdict 'GOOD'"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 100_000, "was the file cut off"),
    ],
)
def test_what_is_no_record_is_refused_with_one_clear_line(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(BadInput) as refused:
        json_file.load(path, Record)
    said = str(refused.value)
    assert says in said and str(path) in said and "\n" not in said and len(said) < 400


def test_free_parts_may_not_nest_without_end() -> None:
    deep: Any = {}
    for _ in range(200):
        deep = {"x": deep}
    with pytest.raises(BadInput, match="nested at most 64 deep"):
        json_file.from_json(put(to_builtins(passing()), ("machine", "deep"), deep), Record)


def test_a_missing_file_and_a_huge_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        json_file.load(tmp_path / "none.json", Record)
    with (tmp_path / "r.json").open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(BadInput, match=f"a run record has at most {LARGEST} bytes"):
        json_file.load(tmp_path / "r.json", Record)


def test_a_folder_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written: No such file or directory; name a folder"):
        json_file.write(tmp_path / "none" / "r.json", WHOLE)
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be written: Not a directory"):
        json_file.write(tmp_path / "file" / "r.json", WHOLE)
    (tmp_path / "taken").mkdir()
    with pytest.raises(BadInput, match="cannot be written"):
        json_file.write(tmp_path / "taken", WHOLE)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "taken"]


def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match="No space left on device"):
        json_file.write(path, WHOLE)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_without_a_browser_looking_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert check_in_browser.main([str(tmp_path / "p.html"), "--out", str(tmp_path)]) == 4
    assert "no browser found; looked for chromium" in capsys.readouterr().err
