"""The page of planted faults says what was found, of faults that are there, and what the engine's judges reach."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from hostile.engine_faults import CONTROLS, FAULTS
from hostile.engine_faults.judged import REQUESTS
from hostile.engine_faults.page import PAGE, ROOT, page, said
from hostile.engine_faults.seen import ANSWERS, BOTH, LOG, NEITHER, by, classes

ROWS = said()
FOUND = {id_: row for id_, row in ROWS.items() if id_ in FAULTS}
ASKED = {id_: row for id_, row in ROWS.items() if id_ in CONTROLS}


@pytest.mark.must("a page made of what was found")
def test_the_page_is_made_of_what_was_found() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(ROWS)


@pytest.mark.must("no row of a fault that is not planted")
def test_rows_are_of_faults_and_controls_that_there_are() -> None:
    assert len(FOUND) + len(ASKED) == len(ROWS)
    assert set(ASKED) == set(CONTROLS)


@pytest.mark.must("95 % found within 500 requests, 85 % rightly blamed, of those that were judged")
def test_faults_are_found_and_rightly_blamed() -> None:
    found = [id_ for id_, row in FOUND.items() if 0 < row["requests"] <= REQUESTS]
    blamed = {id_: row["clause"] for id_, row in FOUND.items() if "clause" in row}
    named = [id_ for id_, clause in blamed.items() if clause in FAULTS[id_].clauses]
    assert len(found) >= 0.95 * len(FOUND) and len(named) >= 0.85 * len(blamed)


@pytest.mark.must("the clause that the table of faults names, or a clean log")
def test_logs_break_the_clause_that_a_fault_breaks() -> None:
    told = {id_: row["log_clause"] for id_, row in FOUND.items() if "log_clause" in row}
    assert told == {id_: FAULTS[id_].log for id_ in told}


@pytest.mark.must("controls asked at least 10,000 requests, and none accused")
def test_no_control_is_accused() -> None:
    assert all(row["wrong"] == 0 and row["requests"] >= 10_000 for row in ASKED.values())


@pytest.mark.must("clean logs and right answers of engines in which nothing is wrong")
def test_the_log_of_no_right_engine_is_accused() -> None:
    assert all((row["log_clause"], row["log_answers"]) == ("", 0) for row in ASKED.values())


@pytest.mark.must("each fault judged both ways in the same lives, and told once")
def test_what_each_of_the_two_sees_is_told() -> None:
    there = [(FAULTS[id_], row) for id_, row in FOUND.items()]
    seen = Counter(by(row) for _, row in there)
    assert seen.total() == len(FAULTS) and min(seen[BOTH], seen[ANSWERS]) >= 50
    last = classes(there).splitlines()[-1]
    assert [int(n) for n in re.findall(r"\d+", last)][2:] == [seen[way] for way in (BOTH, LOG, ANSWERS, NEITHER)]


@pytest.mark.must("at least 120 faults, with the counts that pages say")
def test_pages_say_how_many_there_are() -> None:
    assert len(FAULTS) >= 120
    said = f"[{len(FAULTS)} faults](../reports/published/PLANTED.md)"
    assert said in (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
