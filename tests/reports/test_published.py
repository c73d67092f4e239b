"""The published records can be read, and have their Markdown beside them; `nox -s release` compares them with the
chapters."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvconform.commands.report import load
from kvconform.runner.record import output
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
    assert path.with_name(f"{output.FORMS[type(record)].page}.md").is_file()
    if isinstance(record, Record):
        assert set(record.summary) == release_check.whole(record)
        assert (record.exit_status, record.partial, record.problems) == (0, False, [])


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
