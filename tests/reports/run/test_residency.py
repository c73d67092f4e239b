"""What operations cost stands in every report of a record that says it, and in none of one that does not."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kvreports.run import beside, markdown
from kvreports.run import html as run_html
from kvreports.run import text as run_text
from kvspec.reading.clauses import index
from support.samples.record_samples import SAMPLES, changed, failing

WITHOUT = changed(failing(), residency=[])

TABLES = {"html": run_html.render, "markdown": markdown.render}


@pytest.mark.parametrize("render", TABLES.values(), ids=TABLES)
def test_the_table_is_in_every_report_that_has_costs(render: Any) -> None:
    for record, there in ((failing(), True), (WITHOUT, False)):
        page = render([record], index())
        assert ("resident, within the capacity" in page) == there
        assert ("0 to 1,792" in page) == there


def test_a_terminal_is_told_what_is_paid_for_every_token_of_a_steady_decode_alone() -> None:
    assert [row[1] for row in beside.costs(failing())] == ["append", "view"]
    counts = "launches 0 to 1, allocations 0, synchronisations 0, host to device 0, device to host 0"
    assert beside.token(failing()) == [f"ring append: {counts}"]
    for record, there in ((failing(), True), (WITHOUT, False)):
        assert ("a token of a steady decode costs" in run_text.render([record], index())) == there


def test_samples_are_rendered_with_a_condition_of_any_text() -> None:
    record = changed(SAMPLES[0], residency=[replace(failing().residency[0], when="<b>|`x`")])
    assert "<b>|" not in run_html.render([record], index())
    assert "\\|" in markdown.render([record], index())
