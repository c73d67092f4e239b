"""What the modules of the suite share: their parameters, and how each source of traces is judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from kvconform import laws, vectors
from kvconform.bench import Bench
from kvconform.examples import disagreements
from kvconform.strategies import draws
from kvconform.trial import used_profiles
from kvspec.clauses import index
from kvspec.contract import Description
from kvspec.examples import Example
from kvspec.geometry import CACHES
from kvspec.trace import Trace


def clause_examples(profile: str) -> list[Any]:
    """The worked examples of a chapter, one test each."""
    found = [e for c in index().values() if c.profile == profile for e in c.examples]
    return [
        pytest.param(e, id=e.id, marks=pytest.mark.kv_needs(*used_profiles(e.trace), clause=e.clause))
        for e in found
    ]


def covers(profile: str) -> list[Any]:
    """The frozen covers of a profile, one test each."""
    return [
        pytest.param(c, id=c.name.replace(" ", "-"), marks=pytest.mark.kv_needs(c.start.profile, profile))
        for c in vectors.load(profile)
    ]


def profile_laws(profile: str) -> list[Any]:
    """The laws stated in a chapter, one test for each and each cache."""
    found = [law for law in laws.LAWS if law.clause in index() and index()[law.clause].profile == profile]
    return [
        pytest.param(x, id=f"{x.clause}-{x.profile}", marks=pytest.mark.kv_needs(*x.needs, clause=x.clause))
        for x in found
    ]


def caches(profile: str) -> list[Any]:
    """The caches a profile is explored on, one test each."""
    names = (profile,) if profile in CACHES else CACHES
    return [pytest.param(n, id=n, marks=pytest.mark.kv_needs(n, profile)) for n in names]


def example(bench: Bench, worked: Example) -> None:
    """A worked example: judged like any trace, and its table read line by line."""
    if not suits(worked.trace, bench.adapter):
        return
    seen = bench.judge(worked.trace, "example")
    wrong = disagreements(worked, seen, bench.adapter)
    if wrong or seen.failed:
        bench.broke(worked.clause, "; ".join([*wrong, *(d.message for d in seen.differences)]))
    elif seen.level == index()[worked.clause].level or seen.level == "storage":
        bench.tally.held(worked.clause, "example", bench.test, seen.oracle)


def cover(bench: Bench, frozen: vectors.Cover) -> None:
    """A frozen cover, shortest traces first."""
    bench.judge_all((t for t in frozen.traces() if suits(t, bench.adapter)), "cover", frozen.start.profile)
    counts = bench.tally.coverage[f"cover {frozen.start.profile}"]
    if bench.tally.failing == 0:
        counts["states"] += frozen.states
        counts["transitions"] += frozen.transitions


def explore(bench: Bench, profile: str, kinds: Sequence[str]) -> None:
    """Traces that Hypothesis draws on larger configurations."""
    drawn = list(_drawn(bench, draws.traces(profile, kinds), bench.examples))
    bench.judge_all((t for t in drawn if suits(t, bench.adapter)), "explore", profile, watch=True)


def law(bench: Bench, stated: laws.Law) -> None:
    """Both sides of a law as ordinary traces, and then their ends against each other."""
    for sides in _drawn(bench, stated.strategy(), max(1, bench.examples // 5)):
        if not suits(sides.left, bench.adapter) or not suits(sides.right, bench.adapter):
            continue
        left, right = bench.judge(sides.left, "law"), bench.judge(sides.right, "law")
        wrong = laws.broken(sides, left, right)
        if wrong:
            bench.broke(stated.clause, wrong)
            bench.relation_broke(stated.clause, left, wrong)
            return
        bench.tally.held(stated.clause, "law", bench.test, left.oracle)


def _drawn(bench: Bench, strategy: Any, count: int) -> Iterator[Any]:
    """Draw first, judge later: Hypothesis is a source here, and shrinking is the bench's."""
    found: list[Any] = []

    @seed(bench.seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(drawn: Any) -> None:
        found.append(drawn)

    if count:
        collect()
    yield from found


def suits(trace: Trace, adapter: Description) -> bool:
    """Whether a trace lies within what the adapter declares to take."""
    largest = adapter.largest_append
    within = largest is None or all(op.get("n", 0) <= largest for op in trace.ops)
    dtypes = {op["dtype"] for op in trace.ops if op.get("dtype")} | {trace.config.dtype}
    batches = {op["batch"] for op in trace.ops if op["op"] == "open" and op.get("batch")} | {trace.config.batch}
    limit = adapter.largest_batch or max(batches)
    declared = used_profiles(trace) <= set(adapter.profiles)
    return within and declared and dtypes <= set(adapter.dtypes) and max(batches) <= limit
