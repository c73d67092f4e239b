"""Releases judged by the suite: what cannot be opened is no pass, what is not filed and what changed is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvconform.cli import main
from kvreports import json_file
from kvreports.board.judged_releases import Found, Judged, JudgedCache
from kvreports.board.versions import Versions
from kvspec.records.run import Record
from reports.drawing.test_drawings import ring_steps
from reports.test_versions import KNOWN, bug, record
from support.samples import record_samples
from support.samples.record_samples import clause, failure
from tools import versions, versions_judged

FILED = Found(says="a known one", sort="unchecked", script="mlx/broadcast", clauses=["CACHE-2"])
NEW = Found(says="wrong row. append 1: sees a", sort="not filed", script="", clauses=["RING-1", "RING-3"])


def released(version: str, *found: Found, **more: Any) -> Judged:
    return Judged(version=version, answer="judged", told="Does not conform", bugs=[*found], **more)


def with_caches(*seen: Judged) -> Versions:
    known = record(bug("mlx/broadcast", *["has it"] * len(seen)), releases=len(seen))
    known.caches.append(JudgedCache(name="mlx-rotating", seen=[*seen]))
    return known


def page(tmp_path: Path, found: Versions) -> tuple[str, str]:
    """The Markdown and the HTML of the board."""
    path = tmp_path / "engine.json"
    json_file.write(path, json_file.dumps(found))
    assert main(["board", str(path), "--known", str(KNOWN), "--out", str(tmp_path)]) == 0
    return tuple((tmp_path / n).read_text(encoding="utf-8") for n in ("VERSIONS.md", "board.html"))  # type: ignore


def test_a_page_tells_the_bugs_of_each_release_what_changed_and_what_could_not_be_opened(tmp_path: Path) -> None:
    lacks = Judged(version="1.0", answer="cannot open", told="no attribute 'make_mask'")
    last = released("1.2", FILED, mended=["RING-1", "RING-3"])
    markdown, html = page(tmp_path, with_caches(lacks, released("1.1", FILED, NEW), last))
    assert "| mlx-rotating | cannot open | 2 bugs, 1 of them not filed | 1 bug |" in markdown
    assert "- mlx-rotating, 1.1 to 1.2: mended RING-1, RING-3" in markdown
    assert "- mlx-rotating, 1.1: wrong row. append 1: sees a (RING-1, RING-3)" in markdown
    assert "make\\_mask' (1.0: mlx-rotating)" in markdown
    for words in ("2 bugs, 1 of them not filed", "1.1 to 1.2: mended RING-1", "What could not be judged"):
        assert words in html


def test_a_record_without_caches_has_no_part_for_them(tmp_path: Path) -> None:
    markdown, html = page(tmp_path, record(bug("mlx/broadcast", "has it", "has it", "has it")))
    assert "judged by the suite" not in markdown + html


@pytest.mark.parametrize("version", ["1.1", "1.9"])
def test_a_cache_that_is_not_told_of_each_judged_release_is_refused(
    version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    holed = with_caches(released("1.0"), released("1.1"))
    holed.caches.append(JudgedCache(name="mlx-batch", seen=[released(version)]))
    json_file.write(tmp_path / "engine.json", json_file.dumps(holed))
    assert main(["board", str(tmp_path / "engine.json"), "--out", str(tmp_path)]) == 2
    assert "mlx-batch is not told of each release" in capsys.readouterr().err


def failed(message: str, **more: Any) -> Record:
    shown = failure("FAIL", "RING-1", ring_steps(), message, **more)
    return record_samples.record("mlx-rotating", [clause("RING-1", "FAIL", message)], [shown])


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        ("AttributeError: no attribute 'make_mask' (caches.py:83)", "cannot open"),
        ("observing the cache: AttributeError: no attribute 'empty' (caches.py:83)", "cannot open"),
        ("AttributeError: no attribute 'shape' (cache.py:83)", "judged"),
        ("TypeError: no argument 'keep' (caches.py:83)", "judged"),
    ],
)
def test_only_a_name_that_the_adapter_itself_misses_means_that_a_release_cannot_be_opened(
    error: str, answer: str
) -> None:
    one = versions_judged.release("mlx-rotating", "1.0", failed(f"expected ok, found error ({error})"), KNOWN)
    assert one.answer == answer and (error.split(" (")[0].split("cache: ")[-1] in one.told) == (
        answer == "cannot open"
    )
    assert [found.sort for found in one.bugs] == (["not filed"] if answer == "judged" else [])


def test_what_is_known_has_its_script_and_what_is_not_has_its_trace(tmp_path: Path) -> None:
    known = versions_judged.known_of_all(tmp_path)
    assert "versions =" in KNOWN.read_text() and "versions =" not in known.read_text()
    reason = "trimming a negative number lengthens the cache"
    for said, expected in (
        ({"RING-1": reason}, ("mlx/trim_negative", reason)),
        ({}, ("", "wrong row. append 1: m")),
    ):
        seen = failed("m", words="append 1", known=said)
        (found,) = versions_judged.release("mlx-rotating", "1.0", seen, known).bugs
        assert (found.script, found.says, found.clauses) == (*expected, ["RING-1"])


def test_what_a_known_bug_leads_to_is_no_other_bug(tmp_path: Path) -> None:
    seen = failed("expected any, found crash (behind what is known: it reads out of bounds)")
    assert versions_judged.release("mlx-rotating", "1.0", seen, versions_judged.known_of_all(tmp_path)).bugs == []


def test_each_release_is_compared_with_the_one_before_that_was_judged(tmp_path: Path) -> None:
    known = versions_judged.known_of_all(tmp_path)
    good = record_samples.record("mlx-rotating", [clause("RING-1")])
    records = {"1.0": failed("m"), "1.1": "more than 900 s", "1.2": good, "1.3": failed("m")}
    first, lost, mended, broke = versions_judged.cache("mlx-rotating", records, known).seen
    assert (lost.answer, lost.told) == ("not judged", "more than 900 s")
    assert [(s.broke, s.mended) for s in (first, mended, broke)] == [([], []), ([], ["RING-1"]), (["RING-1"], [])]


@pytest.mark.parametrize(("behind", "broke"), [(" (behind what is known: it lengthens)", []), ("", [""])])
def test_what_a_known_bug_leads_to_is_no_change(behind: str, broke: list[str], tmp_path: Path) -> None:
    hangs = failure("HANG", "", ring_steps(), f"expected any, found hang{behind}")
    records = {
        "1.0": record_samples.record("mlx-rotating", [clause("RING-1")]),
        "1.1": record_samples.record("mlx-rotating", [clause("RING-1")], [hangs]),
    }
    (_, now) = versions_judged.cache("mlx-rotating", records, versions_judged.known_of_all(tmp_path)).seen
    assert now.broke == broke


def test_some_caches_are_judged_anew_and_all_else_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = json_file.load(versions.PUBLISHED / "mlx-lm.json", Versions)
    new = JudgedCache(name="mlx-layers", seen=[released("0.27.1")])
    monkeypatch.setattr(versions, "install", lambda engine, version, folder: folder / version)
    monkeypatch.setattr(versions_judged, "judged", lambda caches, pythons, folder: [new][: len(caches)])
    now = versions.again(versions.engines()["mlx-lm"], before, ["mlx-layers"], tmp_path)
    assert (now.bugs, now.releases, now.made) == (before.bugs, before.releases, before.made)
    old = {c.name: c for c in before.caches}
    assert {c.name: c for c in now.caches} == {**old, "mlx-layers": new}


def test_a_clause_of_a_known_bug_that_both_releases_have_is_no_change(tmp_path: Path) -> None:
    """A quick run blames one clause of a bug or another."""
    known = versions_judged.known_of_all(tmp_path)
    reason = {"CACHE-7": "trimming a negative number lengthens the cache"}
    shown = [
        failure("FAIL", id_, ring_steps(), "m", known={id_: reason["CACHE-7"]}) for id_ in ("RING-1", "RING-5")
    ]
    clauses = [[clause("RING-1", "XFAIL"), clause("RING-5")], [clause("RING-1"), clause("RING-5", "XFAIL")]]
    records = {
        f"1.{n}": record_samples.record("mlx-rotating", told, [one])
        for n, (told, one) in enumerate(zip(clauses, shown, strict=True))
    }
    (_, now) = versions_judged.cache("mlx-rotating", records, known).seen
    assert now.bugs and (now.broke, now.mended) == ([], [])


@pytest.mark.parametrize(("status", "answer"), [(4, "cannot open"), (2, "not judged")])
def test_a_run_that_writes_no_record_says_why(status: int, answer: str, tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\necho it cannot be imported >&2\nexit {status}\n")
    python.chmod(0o755)
    told = versions_judged.run("mlx-rotating", python, KNOWN)
    one = versions_judged.release("mlx-rotating", "1.0", told, KNOWN)
    assert (one.answer, one.told) == (answer, f"exit status {status}: it cannot be imported")


def test_a_record_of_todays_chapters_is_taken_again_and_an_older_one_is_not(tmp_path: Path) -> None:
    place = tmp_path / "reports" / "mlx-rotating" / "record.json"
    place.parent.mkdir(parents=True)
    for digest, expected in ((versions_judged.clauses.digest(), Record), ("sha256:old", str)):
        json_file.write(
            place, json_file.dumps(record_samples.changed(failed("m"), spec={"version": "2", "hash": digest}))
        )
        assert isinstance(versions_judged.run("mlx-rotating", tmp_path / "bin" / "false", KNOWN), expected)


@pytest.mark.parametrize("name", versions.engines())
def test_the_published_record_has_each_cache_of_the_engine(name: str) -> None:
    found = json_file.load(versions.PUBLISHED / f"{name}.json", Versions)
    assert [c.name for c in found.caches] == versions.names(versions.engines()[name])
    judged = [one for cache in found.caches for one in cache.seen if one.answer == "judged"]
    scripts = {bug.script for bug in found.bugs}
    assert judged and {b.script for one in judged for b in one.bugs if b.sort == "wrong result"} <= scripts
    assert not [c.name for c in found.caches for one in c.seen if one.answer == "not judged"]
