"""Two modes are told, and nothing else is: neither a tail nor a round or two that other work made slow."""

from __future__ import annotations

import random

import pytest

from kvprofile.modes import modes
from kvspec.records.profile import Mode


def test_times_of_two_groups_are_told_with_the_rounds_of_each() -> None:
    times = [11.0, 20.0, 11.2, 11.1, 20.5, 19.9, 11.3, 20.1, 11.0]
    assert modes(times) == [Mode(ms=11.1, rounds=5), Mode(ms=20.05, rounds=4)]
    assert modes(times[::-1]) == modes(times)


@pytest.mark.parametrize(
    "times",
    [
        [],
        [5.0],
        [1.0, 1.0, 1.0, 2.0, 2.0],
        [11.0, 11.1, 11.2, 11.3, 11.4, 11.5, 11.6, 20.0, 20.1],
        [11.0, 11.1, 11.2, 12.0, 13.0, 14.1],
        [1.0, 1.3, 1.7, 2.2, 2.9, 3.7, 4.8, 6.3],
        [1.0, 2.0, 3.0, 5.0, 8.0, 20.0],
    ],
    ids=["none", "one round", "few rounds", "two slow rounds", "near each other", "even steps", "wide groups"],
)
def test_other_times_are_one_group(times: list[float]) -> None:
    assert modes(times) == []


def test_a_tail_of_long_times_is_seldom_taken_for_a_second_group() -> None:
    drawn = random.Random(3)
    found = [modes([drawn.lognormvariate(0.0, 0.3) for _ in range(9)]) for _ in range(500)]
    assert sum(map(bool, found)) < 25
