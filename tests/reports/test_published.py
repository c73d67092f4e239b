"""The published reports are of this spec, and say that what they judged conforms."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvreports import json_file
from kvspec.reading import clauses
from kvspec.records.run import Record

PUBLISHED = sorted((Path(__file__).parents[2] / "reports" / "published").glob("*/record.json"))


def test_the_reference_and_opencl_are_published() -> None:
    assert {"reference", "opencl"} <= {p.parent.name for p in PUBLISHED}


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda p: p.parent.name)
def test_a_published_record_is_of_these_chapters_and_all_pass(path: Path) -> None:
    record = json_file.load(path, Record)
    assert record.spec.hash == clauses.digest(), "the chapters changed: run it again and publish that"
    assert {c.id: c.verdict for c in record.clauses} == dict.fromkeys(clauses.index(), "PASS")
    assert (record.exit_status, record.partial, record.problems) == (0, False, [])


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda p: p.parent.name)
def test_its_pages_lie_beside_it(path: Path) -> None:
    assert {"report.html", "report.md"} <= {p.name for p in path.parent.iterdir()}
