"""Which clauses bind an adapter follows from what it declares, and the reason is said where one does not."""

from __future__ import annotations

from typing import Any

import pytest

from kvconform.runner.verdict.verdict import lacks
from kvspec.contract import CHAPTERS, description
from kvspec.reading.clauses import index

METERED = next(c for c in index().values() if set(c.seen_in) == {"meter"} and c.chapter != "residency")


def declaring(**chapters: Any) -> Any:
    return description({"name": "some", "chapters": chapters})


@pytest.mark.parametrize(
    ("clause", "chapters", "why"),
    [
        ("CACHE-12", {"page": "visible"}, "does not declare the chapter growing or ring or layers"),
        ("RING-7", {"growing": "visible"}, "does not declare the chapter ring"),
        ("RESIDENCY-5", {"growing": "storage", "residency": "storage"}, "it speaks of the chapter ring"),
        ("RING-19", {"ring": "visible"}, "level storage"),
        ("RING-10", {"ring": {"level": "visible", "rewind": -1}}, "rewind -1"),
        (METERED.id, {METERED.chapter: "storage", **dict.fromkeys(METERED.applies, "storage")}, "meter counts"),
    ],
)
def test_a_clause_that_does_not_bind_says_why(clause: str, chapters: dict[str, Any], why: str) -> None:
    assert why in lacks(index()[clause], declaring(**chapters))


def test_what_is_declared_binds() -> None:
    whole = declaring(**dict.fromkeys(CHAPTERS, "storage"))
    for clause in ("CACHE-1", "RING-10", "RING-19", "RESIDENCY-5", METERED.id):
        assert lacks(index()[clause], whole) == ""
