"""Engines that are asked for room and bytes, and stores of several layers: the right ones, and planted faults."""

from __future__ import annotations

import pytest

from support.engines import asked_engines
from support.running.judging import record_of


def broken(name: str, *chapters: str) -> set[str]:
    seen = record_of(f"support.engines.asked_engines:{name}", chapters, traces=2)
    return {clause for failure in seen.failures for clause in failure.clauses}


def test_questions_and_bytes_are_claimed_where_they_are_answered() -> None:
    chapters = asked_engines.right.describe()["chapters"]
    assert chapters["questions"] == {"level": "visible", "with": ["askappend"]}
    assert chapters["mem"] == {"level": "visible", "with": []}


@pytest.mark.parametrize(
    ("name", "clause"), [("right", ""), ("asks_for_one", "ASK-1"), ("takes_room_first", "MEM-9")]
)
def test_answers_are_judged(name: str, clause: str) -> None:
    found = broken(name, "bounded", "questions", "mem")
    assert clause in found if clause else not found


def test_a_store_has_a_rollback_where_layers_can_be_trimmed() -> None:
    plain = ["zero", "read", "full", "apart"]
    assert asked_engines.stored.describe()["chapters"]["store"]["with"] == [*plain, "rollback"]
    assert asked_engines.store(trim=None).describe()["chapters"]["store"]["with"] == plain


@pytest.mark.parametrize(
    ("name", "clause"),
    [("swaps", "STORE-5"), ("clears_too_few", "STORE-13"), ("trims_one_more", "STORE-14")],
)
def test_stores_are_judged(name: str, clause: str) -> None:
    assert clause in broken(name, "store")


def test_a_step_that_one_layer_has_no_room_for_leaves_those_before_it_ahead() -> None:
    """The loop is a model's: nobody asks the layers first."""
    assert broken("stored", "store") <= {"STORE-8", "STORE-3", "STORE-5"}
