"""Large sizes: which boundaries were met of each, and which clauses were tested there."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kvreports.run import coverage, html, markdown
from kvspec.records.run import Coverage, Record
from support.samples.record_samples import TEXTS, passing

MET = [1, 15, 16, 17, 65536]


def large() -> Record:
    """A run in which three clauses were tested at boundaries of windows; none of steps was met."""
    record = passing()
    seen = Coverage(5, 10, 0, 0, {}, {"window": MET, "step": []})
    tested = {record.clauses[i].id for i in (0, 1, 3)}
    clauses = [replace(c, tests=["ring/large/window"] if c.id in tested else []) for c in record.clauses]
    return replace(record, clauses=clauses, coverage={**record.coverage, "large ring": seen})


def test_each_size_is_told_with_its_boundaries_and_clauses() -> None:
    ((size, met, clauses),) = coverage.sizes(large())
    assert (size, met) == ("window (ring)", "1, 15 to 17, 65536")
    assert sum(len(part.partition("-")[2].split(", ")) for part in clauses.split("; ")) <= 3
    assert all(c.id.rpartition("-")[2] in clauses for c in large().clauses if c.tests)


def test_a_run_without_large_traces_has_no_such_table() -> None:
    assert not coverage.sizes(passing())
    assert "Large sizes" not in html.render([passing()], TEXTS) + markdown.render([passing()], TEXTS)


@pytest.mark.parametrize("render", [html.render, markdown.render], ids=["html", "markdown"])
def test_it_stands_in_the_report(render: Any) -> None:
    text = render([large()], TEXTS)
    assert "Large sizes" in text and "15 to 17" in text
