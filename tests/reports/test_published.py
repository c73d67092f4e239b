"""The published records can be read, and have their Markdown beside them; `nox -s release` compares them with the
chapters."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kvconform.commands.report import load
from kvconform.runner.record import output
from kvspec.records.mutants import Matrix
from kvspec.records.run import Record
from support.samples.record_samples import failing, passing
from tools import release_check

PUBLISHED = Path(__file__).parents[2] / "reports" / "published"
RECORDS = sorted(PUBLISHED.glob("*/*.json"))


def test_the_reference_and_opencl_are_published() -> None:
    assert {"reference", "opencl", "mutants"} <= {p.parent.name for p in RECORDS}


@pytest.mark.parametrize("path", RECORDS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_published_record_says_that_all_is_well_and_has_its_markdown_beside_it(path: Path) -> None:
    (record,) = load([path])
    assert path.with_name(f"{output.forms_of(record).page}.md").is_file()
    if isinstance(record, Record):
        well = release_check.passes(record) and release_check.ended_well(record)
        assert well or release_check.cut_short(record)


MANY = {
    "wrong-page/CountOfAByte": "a page that more sequences have than a byte counts",
    "aliased-snapshot/SixtyFourSnapshots": "the 65th snapshot",
    "aliased-snapshot/UndoesFiveWrites": "more writes behind a snapshot than are undone",
}
"""Bugs that no short trace shows, and what they take."""


def test_the_shortest_traces_of_bugs_are_short() -> None:
    (matrix,) = load([PUBLISHED / "mutants" / "mutants.json"])
    assert isinstance(matrix, Matrix)
    bugs = [m for m in matrix.mutants if m.bug_class not in ("control", "fake", "systematic")]
    assert all(m.killed for m in bugs) and len(bugs) > 600
    assert {m.id for m in bugs if m.operations > 8} == {*MANY}


def test_a_run_that_was_cut_short_is_no_excuse_but_for_a_lent_gpu_that_found_nothing() -> None:
    (run,) = load([PUBLISHED / "cupy-fast" / "record.json"])
    assert isinstance(run, Record) and release_check.cut_short(run) and not release_check.ended_well(run)
    failed = msgspec.structs.replace(run.clauses[0], verdict="FAIL")
    for wrong in (
        {"adapter": run.adapter | {"name": "opencl"}}, {"partial": False}, {"clauses": [failed, *run.clauses[1:]]}
    ):  # fmt: skip
        assert not release_check.cut_short(msgspec.structs.replace(run, **wrong))


def test_what_is_not_claimed_is_a_chapter_or_not_to_the_bit() -> None:
    (run,) = load([PUBLISHED / "cupy" / "record.json"])
    assert isinstance(run, Record) and release_check.passes(run) and "keyed" not in run.adapter["chapters"]
    left_out = msgspec.structs.replace(run.clauses[0], verdict="NOT_CLAIMED")
    less = msgspec.structs.replace(run, clauses=[left_out, *run.clauses[1:]])
    assert not release_check.passes(less)
    assert release_check.passes(msgspec.structs.replace(less, adapter=less.adapter | {"name": "cupy-fast"}))


def test_pages_are_rendered_and_not_published() -> None:
    assert list(PUBLISHED.rglob("*.html")) == []


def test_a_release_is_held_back_by_what_is_old_or_fails(tmp_path: Path) -> None:
    for record in (passing(), failing()):
        page = output.write(record, tmp_path / record.adapter["name"])
        page.with_suffix(".md").write_text(output.text([record], "markdown", spec=release_check.SPEC))
    lines = list(release_check.faults(tmp_path))
    assert sum("the chapters changed" in line for line in lines) == 2
    assert sum("the run did not end well" in line for line in lines) == 1
    assert not any("renders to" in line for line in lines)
    (tmp_path / "reference" / "report.md").write_text("old")
    assert any("report.md: is not what record.json renders to" in line for line in release_check.faults(tmp_path))
