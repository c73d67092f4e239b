"""What a misspelt name may have meant."""

from __future__ import annotations

import pytest

from kvspec.outside import did_you_mean

KNOWN = ("append", "attend", "open", "RING-10")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("apend", "; did you mean append or attend or open?"),
        ("opn", "; did you mean open?"),
        ("ring-1O", "; did you mean RING-10?"),
        ("xyz", ""),
        ("", ""),
        (None, ""),
        (17, ""),
        ("append" * 100_000, ""),
    ],
)
def test_it_names_what_is_alike_and_nothing_else(name: object, said: str) -> None:
    assert did_you_mean(name, KNOWN) == said


def test_it_names_at_most_so_many() -> None:
    assert did_you_mean("apend", KNOWN, 1) == "; did you mean append?"
