"""Checks from worked examples on other kinds of cache, for adapters that lack the kind of an example."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from kvconform.checks.check import Check
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.generate.claims.other_kinds import moved
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS
from kvspec.reading.clauses import Clause, index
from kvspec.registry import KINDS


def checks(chapters: Collection[str] = CHAPTERS) -> Iterator[Check]:
    """One for each chapter that several kinds share."""
    for chapter in (c for c in chapters if c not in KINDS):
        clauses = [c for c in index().values() if c.chapter == chapter and len(c.applies) > 1]
        if clauses:
            yield Check(f"{chapter}/moved/examples", chapter, frozenset({chapter}), partial(judge, clauses=clauses))


def judge(under_test: AdapterUnderTest, clauses: list[Clause]) -> None:
    """Judge the examples whose kind is not claimed as plain traces, on the kinds that are."""
    claimed = under_test.adapter.chapters
    for clause in clauses:
        given = [e.trace for e in clause.examples if e.trace.kind not in claimed]
        kinds = [kind for kind in clause.applies if kind in claimed]
        traces = (moved(trace, kind) for kind in kinds for trace in given)
        for trace in fitted((t for t in traces if t is not None), under_test.adapter):
            under_test.judge(trace, "example")
