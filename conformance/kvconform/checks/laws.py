"""Checks from laws: two traces that must end alike."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kvconform.checks.check import Check
from kvconform.generate.fit_to_adapter import claimed, suits, within
from kvconform.generate.strategies import sample
from kvconform.judge.trial_result import TrialResult
from kvconform.laws.law import Law, Sides
from kvconform.laws.registry import LAWS
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS, Description
from kvspec.reading.clauses import index

SHARE = 5
"""Exploration draws this many traces for each pair that a law draws."""


def checks() -> Iterator[Check]:
    """One for each law and each kind of cache that it is drawn on."""
    for chapter in CHAPTERS:
        for law in (x for x in LAWS if index()[x.clause].chapter == chapter):
            name = f"{chapter}/law/{law.clause}/{law.kind}"
            yield Check(name, chapter, frozenset(law.needs), partial(judge, law=law), law.clause)


def judge(under_test: AdapterUnderTest, law: Law) -> None:
    """Judge both sides as ordinary traces, then compare their ends."""
    adapter = under_test.adapter
    for pair in sample.some(law.strategy(), max(1, under_test.traces // SHARE), under_test.seed):
        sides = Sides(*(claimed(within(side, adapter), adapter) for side in pair))
        if not _same_law(pair, sides, adapter):
            continue
        left, right = under_test.judge(sides.left, "law"), under_test.judge(sides.right, "law")
        if left.lacks or right.lacks or (not adapter.plain and (_refused(left) or _refused(right))):
            continue
        wrong = law.compare(sides, (left, right))
        if wrong and not any(under_test.explains(side) for side in (left, right)):
            side = right if right.failed and not left.failed else left
            if not under_test.relation_broke(law.clause, side, wrong).expected:
                return
        if not wrong:
            under_test.tally.held(law.clause, "law", under_test.check, left.oracle)


def _same_law(pair: Sides, sides: Sides, adapter: Description) -> bool:
    """Whether the sides, fitted to declared limits, still test the law: only the dtype may have changed."""
    same = all(a.ops == b.ops and a.config.batch == b.config.batch for a, b in zip(pair, sides, strict=True))
    return same and all(suits(side, adapter) for side in sides)


def _refused(side: TrialResult) -> bool:
    """Whether something was refused: then the law says nothing, because an adapter may declare to refuse more."""
    return any(want.result == "refused" or getattr(want, "either", False) for want, _ in side.steps)
