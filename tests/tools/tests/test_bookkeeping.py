"""The page of bookkeeping in other engines: no clause of its chapters is without two that hold it, or a reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tools import bookkeeping
from tools.bookkeeping import CHAPTERS, clauses, reasons, verdicts, wrong

ROOT = Path(__file__).parents[3]

ALL = {name: dict.fromkeys(clauses("page"), "PASS") for name in ("one", "two")}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_clause_is_held_by_two_implementations_or_has_a_reason(chapter: str) -> None:
    assert wrong(chapter, verdicts(ROOT, chapter), reasons(chapter)) == []


def test_the_page_is_as_it_was_written() -> None:
    text = (ROOT / bookkeeping.PAGE).read_text(encoding="utf-8")
    assert bookkeeping.page(ROOT) == text, "run python -m tools.bookkeeping"


def test_a_clause_that_one_holds_is_wrong_without_a_reason_and_one_that_two_hold_with_one() -> None:
    deviates: Mapping[str, str] = {**ALL["two"], "PAGE-4": "XFAIL"}
    found = {**ALL, "two": deviates}
    assert wrong("page", found, {}) == ["PAGE-4"] and wrong("page", found, {"PAGE-4": "it lacks it"}) == []
    assert wrong("page", ALL, {"PAGE-4": "it lacks it"}) == ["PAGE-4"]


def test_all_reasons_are_of_these_chapters() -> None:
    every = {id for chapter in CHAPTERS for id in reasons(chapter)}
    listed = {id for each in bookkeeping.tables.table("tools", "bookkeeping")["reason"] for id in each["clauses"]}
    assert every == listed
