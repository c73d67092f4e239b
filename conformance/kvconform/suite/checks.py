"""What the modules of the suite share: their parameters, and how each source of traces is judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kvconform import vectors
from kvconform.generate.fit_to_adapter import fitted, suits, within
from kvconform.generate.strategies import caches as draws
from kvconform.generate.strategies import sample
from kvconform.judge.trial import TrialResult, used_chapters
from kvconform.judge.worked_examples import declared_otherwise, disagreements
from kvconform.laws.law import Law, Sides
from kvconform.laws.registry import LAWS
from kvconform.runner.under_test import Bench
from kvspec.contract import Description
from kvspec.reading.clauses import index
from kvspec.reading.examples import Example
from kvspec.registry import CACHES


def clause_examples(chapter: str) -> list[Any]:
    """The worked examples of a chapter, one test each."""
    found = [e for c in index().values() if c.chapter == chapter for e in c.examples]
    return [
        pytest.param(e, id=e.id, marks=pytest.mark.kv_needs(*used_chapters(e.trace), clause=e.clause))
        for e in found
    ]


def covers(chapter: str) -> list[Any]:
    """The frozen covers of a chapter, one test each."""
    return [
        pytest.param(c, id=c.name.replace(" ", "-"), marks=pytest.mark.kv_needs(c.start.kind, chapter))
        for c in vectors.load(chapter)
    ]


def chapter_laws(chapter: str) -> list[Any]:
    """The laws stated in a chapter, one test for each and each cache."""
    found = [law for law in LAWS if index()[law.clause].chapter == chapter]
    return [
        pytest.param(x, id=f"{x.clause}-{x.kind}", marks=pytest.mark.kv_needs(*x.needs, clause=x.clause))
        for x in found
    ]


def caches(chapter: str) -> list[Any]:
    """The caches a chapter is explored on, one test each."""
    names = (chapter,) if chapter in CACHES else CACHES
    return [pytest.param(n, id=n, marks=pytest.mark.kv_needs(n, chapter)) for n in names]


def example(bench: Bench, worked: Example) -> None:
    """A worked example: judged like any trace, and its table read line by line."""
    trace = within(worked.trace, bench.adapter)
    if not suits(trace, bench.adapter):
        return
    seen = bench.judge(trace, "example")
    wrong = disagreements(worked, seen, bench.adapter) if trace.ops == worked.trace.ops else []
    if explained(seen, bench.adapter) and worked.clause not in bench.adapter.known:
        return  # it ends early in a deviation that is declared, of another clause
    if wrong or seen.failed:
        bench.broke(worked.clause, "; ".join([*wrong, *(d.message for d in seen.differences)][:3]))
    elif shown(worked, seen, bench.adapter):
        bench.tally.held(worked.clause, "example", bench.test, seen.oracle)


def shown(worked: Example, seen: TrialResult, adapter: Description) -> bool:
    """Whether the example, which held, was read to its end, at the clause's level or above."""
    whole = seen.trace.ops == worked.trace.ops and not declared_otherwise(worked, adapter)
    return whole and seen.level in (index()[worked.clause].level, "storage")


def explained(seen: TrialResult, adapter: Description) -> bool:
    """Whether a trace failed in deviations alone that the adapter declares."""
    return seen.verdict == "FAIL" and bool(seen.blamed) and set(seen.blamed) <= set(adapter.known)


def cover(bench: Bench, frozen: vectors.Cover) -> None:
    """A frozen cover, shortest traces first."""
    traces = list(fitted(frozen.traces(), bench.adapter))
    bench.judge_all(traces, "cover", frozen.start.kind)
    counts = bench.tally.coverage[f"cover {frozen.start.kind}"]
    if bench.tally.failing == 0 and bench.adapter.largest_append is None and len(traces) == len(frozen.lines):
        counts["states"] += frozen.states
        counts["transitions"] += frozen.transitions


def explore(bench: Bench, chapter: str, kinds: Sequence[str]) -> None:
    """Traces that Hypothesis draws on larger configurations of a cache."""
    explore_drawn(bench, chapter, draws.traces(chapter, kinds))


def explore_drawn(bench: Bench, chapter: str, strategy: Any) -> None:
    """Traces that a strategy draws."""
    found = sample.some(strategy, bench.traces, bench.seed)
    bench.judge_all(fitted(found, bench.adapter), "explore", chapter, watch=True)


def law(bench: Bench, stated: Law) -> None:
    """Both sides of a law as ordinary traces, and then their ends against each other."""
    for pair in sample.some(stated.strategy(), max(1, bench.traces // 5), bench.seed):
        sides = Sides(*(within(side, bench.adapter) for side in pair))
        if not _same_law(pair, sides, bench.adapter):
            continue
        left, right = bench.judge(sides.left, "law"), bench.judge(sides.right, "law")
        wrong = stated.compare(sides, (left, right))
        if wrong and not any(explained(seen, bench.adapter) for seen in (left, right)):
            bench.broke(stated.clause, wrong)
            bench.relation_broke(stated.clause, right if right.failed and not left.failed else left, wrong)
            return
        if not wrong:
            bench.tally.held(stated.clause, "law", bench.test, left.oracle)


def _same_law(pair: Sides, sides: Sides, adapter: Description) -> bool:
    """Whether sides fitted to declared limits still say what they said: only the dtype may have changed."""
    same = all(a.ops == b.ops and a.config.batch == b.config.batch for a, b in zip(pair, sides, strict=True))
    return same and all(suits(side, adapter) for side in sides)
