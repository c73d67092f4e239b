"""A launch for keys and another for values is as right as one for both, where it is declared."""

from __future__ import annotations

import pytest

from support.engines import launch_engines
from support.running.judging import broken, record_of


def judged(name: str) -> tuple[set[str], int]:
    seen = record_of(f"{launch_engines.__name__}:{name}", ("residency",), traces=3)
    return broken(seen), seen.exit_status


def test_a_launch_for_keys_and_one_for_values_conform_where_they_are_declared() -> None:
    assert judged("Declared") == (set(), 0)


@pytest.mark.parametrize("name", ["Undeclared", "DeclaredAndMore"])
def test_a_launch_more_than_is_declared_is_a_breach(name: str) -> None:
    clauses, status = judged(name)
    assert "RESIDENCY-3" in clauses and status == 1
