"""Checks from worked examples: the tables of the chapters, executed line by line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from kvconform.checks.check import Check
from kvconform.generate import frozen_traces
from kvconform.generate.claims.fit_to_adapter import cut, suits, within
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.expected import does_otherwise
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS, Description
from kvspec.reading.clauses import examples_of, index
from kvspec.reading.examples import Example
from kvspec.trace import Trace, used_chapters

LOOKED_AT = {"mask", "sees", "output", "rotated"}
"""What is seen of one operation alone: a clause on nothing else says nothing of what comes after it."""


def checks(chapters: Collection[str] = CHAPTERS, clauses: Collection[str] = ()) -> Iterator[Check]:
    """One for each worked example of each chapter; of some clauses those alone are read."""
    for chapter in chapters:
        for worked in examples_of(chapter, clauses):
            needs, run = frozenset(used_chapters(worked.trace)), partial(judge, worked=worked)
            yield Check(f"{chapter}/example/{worked.id}", chapter, needs, run, worked.clause)


def judge(under_test: AdapterUnderTest, worked: Example) -> None:
    """Judge the example like any trace, and read its table line by line."""
    adapter = under_test.adapter
    trace = cut(within(_known(under_test.check, worked, adapter), adapter), adapter)
    if not trace.ops or not suits(trace, adapter):
        return
    seen = under_test.judge(trace, "example")
    told = _told_by_its_table(worked, seen) and not seen.by_hash  # what agrees with the reference agrees with it
    wrong = _disagreements(worked, seen, adapter) if told else []
    if seen.lacks or seen.over_memory:
        return  # the failure is kept for the clauses of the operation that is not there; or no clause is to blame
    if seen.failed and seen.blamed and worked.clause not in seen.blamed and not seen.whole:
        clause = index()[worked.clause]
        unlikely = clause.id in seen.ruled_out or set(clause.seen_in) <= LOOKED_AT
        suspected = clause.law or (clause.id in seen.suspected() and not unlikely)
        under_test.tally.ended_early(worked.clause, under_test.check, seen.blamed, suspected)
    elif seen.known:
        return  # a known deviation of this clause, which the failure tells
    elif wrong or seen.failed:
        message = "; ".join([*wrong, *(d.message for d in seen.differences)][:3])
        under_test.broke(worked.clause, message, seen.verdict)
    elif _read_to_its_end(worked, seen, adapter):
        under_test.tally.held(worked.clause, "example", under_test.check, seen)


def _disagreements(worked: Example, seen: TrialResult, adapter: Description) -> list[str]:
    """Where the table and the adapter disagree."""
    from kvconform.judge.worked_examples import disagreements  # most examples are judged by frozen answers

    return disagreements(worked, seen, adapter)


def _known(check: str, worked: Example, adapter: Description) -> Trace:
    """The example's trace, with what the reference answers where that is what its table says."""
    return frozen_traces.example(check.partition("/")[0], worked) if adapter.plain else worked.trace


def _otherwise(worked: Example, seen: TrialResult, adapter: Description) -> bool:
    """Whether the adapter declares something that the table cannot show: then the table is not read to its end."""
    rows = zip(worked.rows, seen.steps, strict=False)
    return any(does_otherwise(row.said, want, worked, adapter) for row, (want, _) in rows)


def _told_by_its_table(worked: Example, seen: TrialResult) -> bool:
    """Whether the example was judged whole, and at the level of its clause or above: below it, tables ask more."""
    return seen.trace.ops == worked.trace.ops and seen.level in (index()[worked.clause].level, "storage")


def _read_to_its_end(worked: Example, seen: TrialResult, adapter: Description) -> bool:
    """Whether the table of an example that held was read to its end."""
    return _told_by_its_table(worked, seen) and not _otherwise(worked, seen, adapter)
