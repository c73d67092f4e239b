"""A run on one clause finds bugs that break it, though it judges a small part of the suite."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvadapters.reference import Reference
from kvconform.bugs import known_bugs
from kvconform.bugs.mutant import Mutant
from kvconform.checks.check import judge
from kvconform.checks.suite import selected
from kvconform.generate.amounts import CLAUSE_COVERS, CLAUSE_TRACES
from kvconform.runner.settings import Settings
from support.running.local_adapter import LocalAdapter

BUGS = (
    "MASK-22/LongestLength",
    "RING-04/AsWideAsTheOffset",
    "SNAP-06/LastLayerSaved",
    "ROPE-05/SecondShiftInPlaceOfTheFirst",
    "POS-04/ShortestPrompt",
    "TRIM-05/Layer0Alone",
    "ROW-04/EncodedAnew",
)
"""Some real bugs, of as many chapters."""


def found(bug: Mutant, clause: str) -> bool:
    """Whether a run on a clause says that a bug breaks it; it ends with the first check that does."""
    settings = Settings("bug", clauses=(clause,), traces=CLAUSE_TRACES, cover_traces=CLAUSE_COVERS)
    under_test = LocalAdapter(bug.adapter())
    under_test.takes(settings)
    tallies = (judge(under_test, check).tally for check in selected(settings, under_test.adapter))
    return any(tally.differed[clause] or clause in tally.own for tally in tallies)


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_found_by_a_run_on_a_clause_that_it_breaks(name: str) -> None:
    bug = known_bugs.known_bugs()[name]
    assert any(found(bug, clause) for clause in bug.clauses)


def test_a_right_cache_breaks_no_clause_of_its_own() -> None:
    right = known_bugs.known_bugs()[BUGS[0]]
    assert not found(replace(right, adapter=Reference), right.clauses[0])
