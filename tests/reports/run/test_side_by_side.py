"""Several records on a page: what is the same of them is said once, and the page stays small."""

from __future__ import annotations

import re
from pathlib import Path

from kvreports import json_file
from kvreports.run import coverage, html
from kvreports.run.judged import judged
from kvreports.run.overview import overview
from kvspec.reading.clauses import index
from kvspec.records.run import Record
from support.readers.player import unpacked
from support.samples.record_samples import TEXTS, failing, passing

PUBLISHED = Path(__file__).parents[3] / "reports/published"
FOUR = [PUBLISHED / name / "record.json" for name in ("reference", "opencl", "opencl-fast", "cuda-cpu")]


def test_the_page_of_the_four_published_records_has_less_than_2450_bytes_a_clause() -> None:
    page = html.render([json_file.load(path, Record) for path in FOUR], index())
    assert len(page.encode()) < 2450 * len(index())


def test_what_is_the_same_of_several_runs_is_said_once() -> None:
    other = failing()
    fields = {name: getattr(other, name) for name in other.__struct_fields__}
    view = overview([passing(), passing(), Record(**fields | {"coverage": {}})], TEXTS)
    said = {row.id: judged(row, view.columns) for chapter in view.chapters for row in chapter.rows}
    assert all(sum(len(labels.split(", ")) for labels, _ in lines) == 3 for lines in said.values())
    assert any(len(lines) == 1 for lines in said.values()) and any(len(lines) == 2 for lines in said.values())
    together, alone = coverage.alike(view.columns)
    assert together[0].count(",") == 1 and alone[1].record.coverage == {}


def test_a_row_on_which_all_agree_has_one_cell_and_every_other_one_for_each() -> None:
    page = html.render([passing(), failing()], TEXTS)
    for row in overview([passing(), failing()], TEXTS).chapters[1].rows:
        text = page[page.index(f'<tr role="row" id="{row.id}"') :].partition("</tr>")[0]
        cells = re.findall(r'<td role="cell" class="cell"(?: colspan="(\d)")?', text)
        assert cells == (["2"] if row.agreed and row.verdicts == ["PASS"] else ["", ""]), row.id
    assert 'colspan="2" data-adapter="all 2"' in page


def test_a_drawn_trace_is_stepped_through_in_the_page() -> None:
    page = html.render([failing()], TEXTS)
    carried = re.findall(r'<div class="trace" data-trace="([\w-]+)">', page)
    drawn = [f for f in failing().failures if f.steps]
    assert {unpacked(text)["title"] for text in carried} == {f.words for f in drawn} and "Step through" in page
