"""Who is blamed: one bug fails few clauses, each of which differed, and the right one among them."""

from __future__ import annotations

import re
from functools import cache
from statistics import median
from typing import Any

import pytest

from kvconform.runner.verdict.verdict import lacks
from kvref.caches.growing import Growing
from kvspec.contract import Pair, Readable
from kvspec.reading.clauses import index
from support.fakes import fresh_bugs
from support.running import blame
from support.slow import counts, one_in

FRESH = [b.id for b in fresh_bugs.BUGS]


@cache
def judged(bug: str) -> blame.Blame:
    """What a quick run says of a fresh bug, without a diagnosis."""
    return blame.judged(next(b for b in blame.fresh() if b.id == bug), diagnosed=False)


@pytest.mark.parametrize("bug", one_in(13, FRESH))
def test_a_bug_fails_a_clause_that_a_reader_would_name(bug: str) -> None:
    assert judged(bug).seen, (judged(bug).failed, judged(bug).bug.clauses)


@pytest.mark.parametrize("bug", one_in(13, FRESH))
def test_a_clause_fails_only_where_it_differed_or_explains_what_failed(bug: str) -> None:
    """An example that ended in another's failure says nothing of its own clause, unless all traces together explain
    the failures better by that clause than by those in whose failure it ended."""
    said = judged(bug)
    shown = {clause for failure in said.record.failures for clause in failure.clauses}
    kept = [c for c in said.record.clauses if c.id in said.failed and not c.differed and c.id not in shown]
    suspicion = {c.id: c.suspicion for c in said.record.clauses}
    for c in kept:
        ended_in = re.findall(r"[A-Z]+-\d+", c.reason.partition("in a failure of ")[2])
        assert ended_in and all(c.suspicion > suspicion[other] for other in ended_in), (c.id, c.reason)
    assert not any(lacks(index()[c], blame.claimed(said.bug)) for c in said.failed)


@pytest.mark.slow  # judges every bug of the bench
def test_one_bug_fails_at_most_three_clauses_in_the_median() -> None:
    said = [judged(bug) for bug in FRESH]
    assert median(len(b.failed) for b in said) <= 3


class LosesTheFirst(Growing):
    """Its histories lack the first row."""

    def read(self, what: Readable) -> Pair | None:
        found = super().read(what)
        return Pair(*(a[:, :, 1:] for a in found)) if found else found


def test_what_is_claimed_follows_from_the_description_alone() -> None:
    """A cache that fails at once claims as much as a right one, and what it did not come to is not run."""
    claims = "growing", "mask"
    verdicts: list[dict[str, str]] = []
    for cache_of in (Growing, LosesTheFirst):
        bug: Any = blame.Bug("x", ("GROW-2",), claims, fresh_bugs.having(growing=cache_of))
        said = blame.judged(bug, diagnosed=False, without={"growing": {"free", "view"}, "mask": {"boolean"}})
        verdicts.append({c.id: c.verdict for c in said.record.clauses})
    right, wrong = ({c for c, v in each.items() if v == "NOT_CLAIMED"} for each in verdicts)
    assert right == wrong and set(verdicts[0].values()) == {"PASS", "PARTLY_OBSERVED", "NOT_CLAIMED"}
    assert "NOT_RUN" in verdicts[1].values() and verdicts[1]["GROW-2"] == "FAIL"


@pytest.mark.parametrize("every", counts(13, 1))
def test_the_clause_to_look_at_first_is_one_that_a_reader_would_name(every: int) -> None:
    said = [judged(bug) for bug in FRESH[::every]]
    assert sum(b.right for b in said) >= 0.85 * len(said), [(b.bug.id, b.first) for b in said if not b.right]


def test_a_silent_wrong_row_comes_before_a_missing_check() -> None:
    said = judged("ChecksNothingAndLosesARow")
    assert said.right and "CACHE-7" in said.failed


SHOWN = {
    "ChunkForgetsOne": ("RING-3", "MASK-8"),
    "WindowMaskOneWide": ("MASK-8", "RING-3"),
    "RowLostAtGrowth": ("GROW-2", "MASK-2"),
    "DeadRowSeen": ("GROW-2", "MASK-2"),
}
"""Bugs at level visible: the clause at fault, and one that only says what is done with the same rows."""


@pytest.mark.parametrize(("bug", "clauses"), one_in(2, SHOWN.items()), ids=SHOWN)
def test_a_row_that_is_not_there_is_the_fault_of_the_history_and_one_let_through_of_the_mask(
    bug: str, clauses: tuple[str, str]
) -> None:
    fresh = next(b for b in blame.fresh() if b.id == bug)
    failed = blame.judged(fresh._replace(level="visible"), diagnosed=False).failed
    assert clauses[0] in failed and clauses[1] not in failed


def test_what_a_refused_step_says_wrongly_of_a_rewind_is_the_fault_of_the_answer() -> None:
    said = judged("SaysAlwaysYes")
    assert said.failed == ["CACHE-9"]
