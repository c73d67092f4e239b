"""The board of released engines: the published one is what the command makes, and every failure on it is filed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvconform.cli import main
from kvconform.commands.board import NOT_FILED, board
from kvconform.runner import known
from kvreports import json_file
from kvspec.records.run import Record
from support.record_samples import failing, passing

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "reports" / "published" / "engines"
RECORDS = sorted(PUBLISHED.glob("*/record.json"))
KNOWN = ROOT / "deviations" / "kvconform.toml"


def test_the_published_board_is_what_the_records_and_the_known_deviations_make(tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "published" / "engines"
    for path in [*RECORDS, *KNOWN.parent.rglob("*.*")]:
        beside = tmp_path / path.relative_to(ROOT)
        beside.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(path.read_bytes())
    records = [str(folder / p.parent.name / p.name) for p in RECORDS]
    assert (
        main(["board", *records, "--known", str(tmp_path / "deviations" / KNOWN.name), "--out", str(folder)]) == 0
    )
    written = (folder / "README.md").read_text(encoding="utf-8")
    assert written == (PUBLISHED / "README.md").read_text(encoding="utf-8"), "nox -s board writes it again"
    assert "Content-Security-Policy" in (folder / "board.html").read_text(encoding="utf-8")


def test_every_failure_of_a_published_record_is_filed_with_its_script() -> None:
    found = board(RECORDS, KNOWN, PUBLISHED)
    deviations = [d for e in found.engines for d in e.deviations]
    assert [d.failure.words for d in deviations if d.sort == NOT_FILED.sort] == []
    assert [
        d.failure.words for d in deviations if d.sort in ("wrong result", "broken promise") and not d.draft
    ] == []


@pytest.mark.parametrize("path", RECORDS, ids=lambda p: p.parent.name)
def test_all_clauses_of_every_failure_are_filed(path: Path) -> None:
    record = json_file.load(path, Record)
    filed = [k for k in known.read(KNOWN) if k.names(path.parent.name)]
    assert [f.words for f in record.failures if set(f.clauses) - set(known.explanations(filed, f))] == []


def test_every_script_that_is_named_is_there() -> None:
    named = {k.script for k in known.read(KNOWN) if k.script}
    assert {n for n in named if not (KNOWN.parent / f"{n}.py").is_file()} == set()


def test_a_known_deviation_is_of_one_adapter_of_several_or_of_any() -> None:
    of = [known.KnownDeviation("GROW-1", "why", adapter=a) for a in ("a", ("a", "b"), "")]
    assert [[k.names(n) for n in "abc"] for k in of] == [[True, False, False], [True, True, False], [True] * 3]


def test_what_is_not_filed_is_said(tmp_path: Path) -> None:
    for name, record in (("good", passing()), ("bad", failing())):
        json_file.write(tmp_path / f"{name}.json", json_file.dumps(record))
    empty = tmp_path / "none.toml"
    empty.write_text('[[unjudged]]\nengine = "other"\nreason = "it wants a GPU"\n')
    records = [str(tmp_path / f"{name}.json") for name in ("good", "bad")]
    assert main(["board", *records, "--known", str(empty), "--out", str(tmp_path)]) == 0
    text = (tmp_path / "README.md").read_text()
    assert "not filed" in text and "| other" in text and "1 of them without a deviation" in text


def test_a_record_that_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["board", str(tmp_path / "none.json"), "--out", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err
