"""Whatever an adapter claims: each clause that the harness calls supported is shown by something that is judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import combinations, product
from typing import NamedTuple

import pytest

from kvadapters.reference import Reference
from kvconform.checks.suite import suite
from kvconform.generate.claims.fit_to_adapter import lacking
from kvconform.runner.verdict.observation import exercisable
from kvconform.runner.verdict.tally import Tally
from kvconform.runner.verdict.verdict import Evidence, Verdict, verdict_on
from kvspec.contract import CHAPTERS, LEVELS, Description, description
from kvspec.reading.clauses import Clause, index
from kvspec.registry import KINDS, abilities, has
from kvspec.trace import Trace, used_chapters
from support.slow import one_in

OTHERS = 2
"""Chapters that are claimed beside a clause's own: as many as any clause needs, and some do not suffice."""


class Example(NamedTuple):
    """A worked example, by the chapters it uses; those that are looked at have masks where they show in passing."""

    id: str
    uses: frozenset[str]
    looked_at: frozenset[str]

    def is_judged(self, of: Clause, claimed: Mapping[str, str]) -> bool:
        """Whether an adapter that claims this is judged by it at the level of the clause."""
        low = {c for c, level in claimed.items() if LEVELS.index(level) < LEVELS.index(of.level)}
        return self.uses <= set(claimed) and not self.looked_at & low


def examples(clause: Clause) -> Iterator[Example]:
    for worked in clause.examples:
        used = used_chapters(worked.trace)
        masked = {"mask"} if any(has(kind, "mask", "mask") for kind in used & set(KINDS)) else set()
        yield Example(worked.id, frozenset(used), frozenset(used | masked))


def claims(clause: Clause, worked: list[Example]) -> Iterator[Mapping[str, str]]:
    """Claims of the clause's chapter and of some others that it speaks of or that its examples use."""
    others = {*clause.applies, *(c for e in worked for c in e.looked_at)} - {clause.chapter}
    for n in range(OTHERS + 1):
        for chapters in combinations(sorted(others), n):
            if {clause.chapter, *chapters} & set(KINDS):
                for levels in product(LEVELS, repeat=n + 1):
                    yield dict(zip((clause.chapter, *chapters), levels, strict=True))


def is_moved(clause: Clause, adapter: Description) -> bool:
    """Whether an adapter is judged by the clause's examples on another kind."""
    return f"{clause.chapter}/moved/examples" in suite() and exercisable(clause, adapter)


def unexercised(clause: Clause, adapter: Description) -> Verdict:
    """The verdict on the clause of a run in which nothing was exercised: NOT_RUN where it is called supported."""
    return verdict_on(Evidence(clause, Tally(), adapter, partial=False))


@pytest.mark.parametrize("chapter", one_in(7, CHAPTERS))
def test_a_supported_clause_is_shown_by_an_example_that_is_judged(chapter: str) -> None:
    for clause in (c for c in index().values() if c.chapter == chapter):
        worked = list(examples(clause))
        for claimed in claims(clause, worked):
            adapter = description({"name": "x", "chapters": dict(claimed)})
            verdict = unexercised(clause, adapter)
            shown = [e.id for e in worked if e.is_judged(clause, claimed)]
            if verdict.name == "NOT_RUN":
                assert shown or is_moved(clause, adapter), (clause.id, claimed)
                assert all(suite()[f"{chapter}/example/{id_}"].needs <= set(claimed) for id_ in shown)
            else:
                assert "limits" not in verdict.reason, (clause.id, claimed, verdict.reason)


def abilities_used(traces: Iterable[Trace]) -> set[tuple[str, str]]:
    """The abilities that an adapter may lack, of those that these traces take."""
    adapter = without(*[(c, a) for c in CHAPTERS for a in abilities(c)])
    names = {name for trace in traces for _, lacks in lacking(trace, adapter) for name in lacks}
    return {(chapter, ability) for chapter, _, ability in (name.partition(".") for name in names)}


@pytest.mark.parametrize("chapter", one_in(7, CHAPTERS))
def test_a_supported_clause_is_shown_without_an_ability_that_is_not_claimed(chapter: str) -> None:
    for clause in (c for c in index().values() if c.chapter == chapter):
        traces = [e.trace for e in clause.examples]
        for chapter_of, ability in abilities_used(traces):
            adapter = without((chapter_of, ability))
            if unexercised(clause, adapter).name == "NOT_RUN" and not exercisable(clause, adapter):
                assert any(not lacks for t in traces for lacks in [[n for _, x in lacking(t, adapter) for n in x]])


@cache
def without(*lacked: tuple[str, str]) -> Description:
    """The reference without some abilities; without a history it makes no masks either."""
    if any(ability == "history" for _, ability in lacked):
        lacked = (*lacked, *(("mask", ability) for ability in abilities("mask")))
    chapters = {c: {"level": "storage", "without": [a for of, a in lacked if of == c]} for c in CHAPTERS}
    return description({**Reference().describe(), "chapters": chapters})
