"""Worked examples hold, on the reference and on the list model, and every filled cell of them says something."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.judge import worked_examples
from kvconform.judge.trial import run
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.reference import CitingReference
from kvspec.contract import CHAPTERS, METERED, Description, description
from kvspec.reading import columns
from kvspec.reading.clauses import index
from kvspec.reading.examples import Example, Row
from support.running.local_adapter import LocalAdapter, judge_examples
from support.slow import one_in
from tools import check_examples

REFERENCE = description(Reference().describe())
WORKED = [e for c in index().values() for e in c.examples]


def test_every_worked_example_holds_at_both_levels_and_exercises_its_clause() -> None:
    assert list(check_examples.check_all()) == []
    assert len(WORKED) > 150


def changed(said: Any) -> Any:
    """Another value that the cell might have held."""
    if said is None or said == []:
        return [25]
    if isinstance(said, bool):
        return not said
    if isinstance(said, int | float):
        return said + 1
    if isinstance(said, str):
        return {"-inf": "causal", "nan": "0"}.get(said) or re.sub(r"\d+$", "999", said)
    if isinstance(said, dict):
        return {**said, "array": changed(said["array"])} if said["array"] else {**said, "shape": [1, 1, 0, 99]}
    return [*said[:-1], changed(said[-1])] if isinstance(said, list) else (said[0], said[1] + 1)


def with_cell(example: Example, at: int, column: str) -> Example:
    """The example with one cell that says something else."""
    other = -1 if column in METERED else changed(example.rows[at].said[column])  # any larger bound would hold too
    row = Row({**example.rows[at].said, column: other})
    return Example(example.id, example.clause, example.trace, (*example.rows[:at], row, *example.rows[at + 1 :]))


def cells(example: Example) -> list[tuple[int, str]]:
    return [(i, column) for i, row in enumerate(example.rows) for column in row.said]


def _says_something(example: Example, seen: TrialResult, at: int, column: str) -> bool:
    """Whether the cell would disagree if it held another value. No other cell is read: those agree."""
    row = Row({column: with_cell(example, at, column).rows[at].said[column]})
    step = replace(seen, steps=seen.steps[at : at + 1])
    return bool(worked_examples.disagreements(replace(example, rows=(row,)), step, REFERENCE))


@pytest.mark.parametrize("example", WORKED, ids=lambda e: e.id)
def test_no_filled_cell_is_vacuous(example: Example) -> None:
    seen = run(example.trace, CitingReference(), REFERENCE)
    assert len(seen.steps) == len(example.rows) and cells(example)
    assert worked_examples.disagreements(example, seen, REFERENCE) == []
    assert [c for c in cells(example) if not _says_something(example, seen, *c)] == []


def test_every_column_is_used_somewhere() -> None:
    used = {columns.column(heading).heading for e in WORKED for _, heading in cells(e)}
    assert set(columns.every()) - used <= {"retained"}


def _judged_at(level: str, example: Example, **claims: Any) -> tuple[TrialResult, Description]:
    adapter = description({"name": "x", "chapters": {p: {"level": level, **claims} for p in ("growing", "ring")}})
    return run(example.trace, CitingReference(), REFERENCE, level), adapter


def test_at_level_visible_columns_of_storage_say_nothing_and_others_still_do() -> None:
    example = next(e for e in WORKED if {"offset", "slots"} <= set(e.rows[0].said))
    seen, adapter = _judged_at("visible", example)
    assert worked_examples.disagreements(with_cell(example, 0, "slots"), seen, adapter) == []
    assert worked_examples.disagreements(with_cell(example, 0, "offset"), seen, adapter) != []


class WideRows(Reference):
    """The reference, for an engine that takes rows of 32 elements, or 64 and so on."""

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "limits": {"dims": {"multiple": 32, "equal": False}}}


@pytest.mark.parametrize("chapter", one_in(4, CHAPTERS))
def test_a_table_is_read_as_far_as_it_is_true_of_rows_of_other_widths(chapter: str) -> None:
    """Bytes, sums of elements and what is too wide for a row are other ones; which rows are seen is the same."""
    under_test = LocalAdapter(WideRows())
    judge_examples(under_test, chapter)
    assert (under_test.tally.own, under_test.tally.failures) == ({}, [])


def test_numbers_of_a_table_are_shown_as_numbers() -> None:
    example = next(e for e in WORKED if "fit" in e.rows[0].said)
    seen = run(example.trace, CitingReference(), REFERENCE)
    (wrong,) = worked_examples.disagreements(with_cell(example, 0, "fit"), seen, REFERENCE)
    assert re.search(r"the example says fit \d+ \d+, found \d+ \d+$", wrong)


def test_capacity_binds_only_who_grows_by_steps() -> None:
    example = next(e for e in WORKED if "capacity" in e.rows[0].said)
    for grows, wrong in (("step", True), ("free", False)):
        seen, adapter = _judged_at("storage", example, grows=grows)
        assert bool(worked_examples.disagreements(with_cell(example, 0, "capacity"), seen, adapter)) == wrong


def test_a_refusal_that_names_no_clause_is_taken_for_the_right_one() -> None:
    example = next(e for e in WORKED if str(e.rows[0].said.get("offset")).startswith("refused"))
    seen = run(example.trace, CitingReference(), REFERENCE)
    seen.steps[0][1].clause = ""
    assert worked_examples.disagreements(example, seen, REFERENCE) == []
    seen.steps[0][1].clause = "GROW-999"
    assert worked_examples.disagreements(example, seen, REFERENCE) != []


@pytest.mark.parametrize("column", ["output", "bytes", "device_to_device"])
def test_numbers_and_bytes_bind_only_who_takes_rows_of_the_width_shown(column: str) -> None:
    """Others are judged on wider rows, whose numbers are held to the bound, and whose bytes are more."""
    found = ((e, i) for e in WORKED for i, row in enumerate(e.rows) if row.said.get(column) not in (None, []))
    example, at = next((e, i) for e, i in found if e.trace.config.k_dim % 32)
    seen = run(example.trace, CitingReference(), REFERENCE)
    dims = {"dims": {"multiple": 32, "equal": False}}
    wide = description({**Reference().describe(), "limits": dims})
    for adapter, wrong in ((REFERENCE, True), (wide, False)):
        assert bool(worked_examples.disagreements(with_cell(example, at, column), seen, adapter)) == wrong
