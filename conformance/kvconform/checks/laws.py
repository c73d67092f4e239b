"""Checks from laws: two traces that must end alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING

from kvconform.checks.check import Check
from kvconform.generate.claims.fit_to_adapter import claimed, suits, within
from kvconform.generate.claims.shown_by_outputs import attending
from kvconform.judge.trial_result import TrialResult
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS, Description
from kvspec.reading.clauses import index

if TYPE_CHECKING:
    from kvconform.laws.law import Law, Sides  # what judges no law reads none

SHARE = 2
"""Exploration draws this many traces for each pair that a law draws."""

MORE = 100
"""Pairs that are drawn where none of those wanted could say anything, because the claim shuts them out."""


def checks(chapters: Collection[str] = CHAPTERS, clauses: Collection[str] = ()) -> Iterator[Check]:
    """One for each law and each kind of cache that it is drawn on; none are read for clauses that are no laws."""
    if clauses and not any(index()[clause].law for clause in clauses):
        return
    from kvconform.laws.registry import LAWS  # reads the laws of all chapters

    for chapter in chapters:
        for law in (x for x in LAWS if x.chapter == chapter):
            yield Check(law.check, chapter, frozenset(law.needs), partial(judge, law=law), law.clause)


def judge(under_test: AdapterUnderTest, law: Law) -> None:
    """Judge as many pairs of sides as are wanted; if none of them could say anything, more, until one does."""
    wanted, tally = max(1, under_test.traces // SHARE), under_test.tally
    most = max(wanted, MORE)
    pairs = _pairs(law, most, under_test.seed)
    told = _told(under_test, law, islice(pairs, wanted), wanted)
    if told or tally.failing or under_test.budget_used >= 1:
        return
    if not _told(under_test, law, pairs, 1) and not tally.failing:
        tally.shuts_out(under_test.check, f"none of {most} pairs that were drawn can say anything of it")


def _pairs(law: Law, most: int, seed: int) -> Iterator[Sides]:
    """Give the pairs of a law. Each is drawn once in a process, and only when it is asked for."""
    drawn, more = _drawn(law, most, seed)
    for number in range(most):
        if number == len(drawn):
            drawn.append(next(more))
        yield drawn[number]


@cache
def _drawn(law: Law, most: int, seed: int) -> tuple[list[Sides], Iterator[Sides]]:
    """The pairs of a law that were drawn, and where more come from."""
    from kvconform.generate.strategies import sample  # what judges no law draws none

    return [], sample.each(law.strategy(), most, seed)


def _told(under_test: AdapterUnderTest, law: Law, pairs: Iterable[Sides], most: int) -> int:
    """Judge pairs until `most` of them said that the law holds, or one that it does not; count those that did."""
    adapter, told = under_test.adapter, 0
    for pair in pairs:
        left, right = (claimed(within(side, adapter), adapter) for side in pair)
        sides = pair._replace(left=left, right=right)
        holds = _judge(under_test, law, sides) if _same_law(pair, sides, adapter) else None
        told += holds is not None
        if told == most or holds is False or under_test.budget_used >= 1:
            break
    return told


def _judge(under_test: AdapterUnderTest, law: Law, sides: Sides) -> bool | None:
    """Judge both sides as ordinary traces, then compare their ends. Tell whether the law holds, or does not as is
    known; None if this pair says nothing of it."""
    left, right = under_test.judge(sides.left, "law"), under_test.judge(sides.right, "law")
    if left.over_memory or right.over_memory:
        return None
    if left.lacks or right.lacks:
        return None  # the failure is kept for the clauses of the operation that is not there
    if not (left.took_rows and right.took_rows):
        return None
    if not under_test.adapter.plain and (_refused(left) or _refused(right)):
        return None
    wrong = law.compare(sides, (left, right))
    if not wrong and not (left.shows(law.clause) and right.shows(law.clause)):
        return None  # bounds are so wide that both sides agree whatever they are
    if not wrong:
        under_test.tally.held(law.clause, "law", under_test.check, left)
        return True
    if left.known or right.known:
        return None  # a side ends early in a deviation that is known
    if left.failed and right.failed:
        under_test.tally.ended_early(law.clause, under_test.check, (*left.blamed, *right.blamed))
        return None  # what fails on both sides says nothing of how they relate
    side = right if right.failed else left
    return under_test.relation_broke(law.clause, side, wrong).expected


def _same_law(pair: Sides, sides: Sides, adapter: Description) -> bool:
    """Whether the sides still test the law once they fit declared limits. Only the dtype may have changed, and
    appends may have become attends, which show the same rows."""
    asked = (replace(a, ops=attending(a, adapter)) for a in pair)
    same = all(a.ops == b.ops and a.config.batch == b.config.batch for a, b in zip(asked, sides, strict=True))
    return same and all(suits(side, adapter) for side in sides)


def _refused(side: TrialResult) -> bool:
    """Whether something was refused: then the law says nothing, because an adapter may declare to refuse more."""
    return any(want.result == "refused" or getattr(want, "either", False) for want, _ in side.steps)
