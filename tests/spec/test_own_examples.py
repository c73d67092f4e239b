"""A worked example fails on a cache that breaks its clause: on one of the bugs that are planted for it, and on
plain breaches on which examples once held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.bugs.known_bugs import known_bugs
from kvconform.bugs.planting import reference_with
from kvconform.judge import trial
from kvconform.judge.worked_examples import disagreements
from kvref.abilities.draft import Round
from kvref.caches.store import Store
from kvref.memory import mem
from kvspec.contract import description
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.reading.clauses import index
from kvspec.session.driver import Session
from support.slow import one_in

BEYOND_A_TABLE = {
    "COPY-9": "its bugs take rows that are alike, more rows in a source than are copied, or show only unobserved",
    "COPY-11": "its bugs take rows that are alike, or show only unobserved",
    "RING-21": "its bug begins at a window of 1,025",
    "RING-22": "its bug begins at row 257",
    "ROPE-1": "its bug begins at position 4,096",
    "SINK-2": "its bug begins at 512 dropped rows",
    "SNAP-4": "its bug takes two snapshots of different branches",
    "BUCKET-33": "its bugs begin at rows 257 and 1,025, or take steps that nobody looks at",
}
"""Clauses of which all planted bugs need what no short table has, and what that is."""

OF_ANOTHER = {
    "STORE-19": "its bug saves a view, which a caller copies at once: a scribble before that shows it (CACHE-4)",
}
"""The clause whose own example does not show the one bug that is planted for it."""

CLAUSES = sorted({c for bug in known_bugs().values() for c in bug.clauses if not index()[c].law})


def fails(adapter: Any, clause: str) -> bool:
    """Tell whether an example of the clause fails on this adapter."""
    about = description(adapter.describe())
    for example in index()[clause].examples:
        seen = trial.on(example.trace, lambda observe: Session(adapter, observe), about)
        if seen.failed or disagreements(example, seen, about):
            return True
    return False


@pytest.mark.parametrize("clause", one_in(3, CLAUSES))
def test_a_planted_bug_of_a_clause_fails_its_own_example(clause: str) -> None:
    bugs = [bug for bug in known_bugs().values() if clause in bug.clauses]
    argued = clause in BEYOND_A_TABLE or clause in OF_ANOTHER
    assert any(fails(bug.adapter(), clause) for bug in bugs) != argued


def test_an_argument_is_about_a_clause_with_bugs() -> None:
    assert {*BEYOND_A_TABLE, *OF_ANOTHER} <= set(CLAUSES)


class FirstLayerOnly(Store):
    """Captures attention on the first layer, whichever is named."""

    def capture_attend(self, layer: int, heads: int, splits: int = 1) -> Any:
        return super().capture_attend(min(layer, 0), heads, splits)


class KeepsTheBatch(Store):
    """Keeps a batch of as many sequences."""

    def batch(self, m: int, *more: Any) -> Any:
        if self.batch_ is not None and len(self.batch_.lengths) == m:
            return None
        return super().batch(m, *more)


class RefusesWrapped(Round):
    """Begins over no ring that has wrapped."""

    def __init__(self, caches: Sequence[Any], isolated: bool) -> None:
        for cache in caches:
            if cache is not None and cache.config.window is not None and cache.offset > cache.config.window:
                raise Refused("", "it has wrapped")
        super().__init__(caches, isolated)


class FitsAnyKind(Reference):
    """Asks for the sizes of a store, and not for the kind."""

    def fit(self, kind: str, config: Config, free: int, reserve: int | None, most: int | None) -> tuple[int, bool]:
        if config.layers is None or config.max_len is None:
            return super().fit(kind, config, free, reserve, most)
        return mem.fit("store", config, free, reserve, most)


BREACHES = {
    "ATTN-21": FirstLayerOnly,
    "BATCH-1": KeepsTheBatch,
    "DRAFT-10": RefusesWrapped,
    "MEM-17": FitsAnyKind,
}


@pytest.mark.parametrize("clause", BREACHES)
def test_a_plain_breach_fails_the_example_of_its_clause(clause: str) -> None:
    assert not fails(Reference(), clause)
    assert fails(reference_with(BREACHES[clause])(), clause)


@pytest.mark.parametrize("bug", ["GQA-01/HeadsIgnored", "wrong-weight/ScalesTwice", "wrong-weight/ScalesBesides"])
def test_a_plain_breach_that_is_planted_fails_it_too(bug: str) -> None:
    mutant = known_bugs()[bug]
    assert all(fails(mutant.adapter(), clause) for clause in mutant.clauses)
