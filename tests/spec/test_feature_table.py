"""Every clause has its place among the features of the systems, and a page tells what became of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvspec.errors import BadInput
from kvspec.reading import clauses
from tools import features_table
from tools.features_table import Feature, systems

ROOT = Path(__file__).parents[2]
FEATURES = [f for features in systems().values() for f in features]


def test_every_clause_stands_beside_a_feature_and_every_id_exists() -> None:
    assert {i for f in FEATURES for i in f.clauses} == set(clauses.index())


def test_features_are_named_once_in_a_system_and_bound_by_a_clause_once() -> None:
    for system, features in systems().items():
        names = [f.name for f in features]
        assert len(set(names)) == len(names), system
    assert all(len(set(f.clauses)) == len(f.clauses) for f in FEATURES)


@pytest.mark.parametrize("wrong", ["GROW", "GROW-1-4", "grow-1", "GROW-1.."])
def test_what_is_no_clause_is_an_error(wrong: str) -> None:
    with pytest.raises(BadInput, match="no clause"):
        _ = Feature("x", wrong).clauses


def test_a_range_is_all_clauses_of_it() -> None:
    assert Feature("x", "GROW-16..18 RING-7").clauses == ("GROW-16", "GROW-17", "GROW-18", "RING-7")


def test_the_page_is_what_is_generated() -> None:
    text = (ROOT / features_table.PAGE).read_text(encoding="utf-8")
    assert features_table.page(ROOT) == text, "run python -m tools.features_table"


def _record(**verdicts: str) -> dict[str, str]:
    return {name.replace("_", "-"): verdict for name, verdict in verdicts.items()}


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (_record(GROW_1="PASS", GROW_2="PASS"), "PASS"),
        (_record(GROW_1="PASS", GROW_2="FAIL"), "1 FAIL, 1 PASS"),
        (_record(GROW_1="PASS"), "1 PASS, 1 not run yet"),
        (_record(), "not run yet"),
    ],
)
def test_a_feature_is_no_better_than_its_clauses(verdicts: dict[str, str], said: str) -> None:
    assert features_table._said(Feature("x", "GROW-1..2"), verdicts) == said
    assert features_table._said(Feature("x"), verdicts) == ""
