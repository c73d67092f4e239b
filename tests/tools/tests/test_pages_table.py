"""The page of foreign pools: no clause of PAGE is without two that pass it, or a reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tools import pages_table
from tools.pages_table import clauses, reasons, verdicts, wrong

ROOT = Path(__file__).parents[3]

ALL = {name: dict.fromkeys(clauses(), "PASS") for name in ("one", "two")}


def test_each_clause_is_passed_by_two_pools_or_has_a_reason() -> None:
    assert wrong(verdicts(ROOT), reasons()) == []


def test_the_page_is_as_it_was_written() -> None:
    text = (ROOT / pages_table.PAGE).read_text(encoding="utf-8")
    assert pages_table.page(ROOT) == text, "run python -m tools.pages_table"


def test_a_clause_that_one_pool_passes_is_wrong_without_a_reason_and_one_that_two_pass_with_one() -> None:
    deviates: Mapping[str, str] = {**ALL["two"], "PAGE-4": "XFAIL"}
    found = {**ALL, "two": deviates}
    assert wrong(found, {}) == ["PAGE-4"] and wrong(found, {"PAGE-4": "it lacks it"}) == []
    assert wrong(ALL, {"PAGE-4": "it lacks it"}) == ["PAGE-4"]
