"""Checks that follow from what an adapter claims: worked examples on other kinds, and traces of its dialects.

An adapter that lacks the kind of an example is judged by it on a kind that it has. Covers and explorations are
written for the defaults and judged by the declared dialects. They rewind to any target and append any number of
rows, so they also show what a dialect does. The traces that the chapters' records give meet its boundaries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from kvconform.checks.check import Check
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS
from kvspec.notation import from_sentence
from kvspec.reading.clauses import Clause, index
from kvspec.registry import DIALECTS, KINDS, dialects
from kvspec.trace import Trace


def checks(chapters: Collection[str] = CHAPTERS) -> Iterator[Check]:
    """Give those of moved examples, then those of dialects."""
    yield from _moved(chapters)
    yield from _dialects(chapters)


def _moved(chapters: Collection[str]) -> Iterator[Check]:
    """One for each chapter that several kinds share."""
    for chapter in (c for c in chapters if c not in KINDS):
        clauses = [c for c in index().values() if c.chapter == chapter and len(c.applies) > 1]
        if clauses:
            yield Check(
                f"{chapter}/moved/examples", chapter, frozenset({chapter}), partial(_judge_moved, clauses=clauses)
            )


def _judge_moved(under_test: AdapterUnderTest, clauses: list[Clause]) -> None:
    """Judge the examples whose kind is not claimed as plain traces, on the kinds that are."""
    from kvconform.generate.claims.other_kinds import moved  # few adapters lack the kind of an example

    claimed = under_test.adapter.chapters
    for clause in clauses:
        given = [e.trace for e in clause.examples if e.trace.kind not in claimed]
        kinds = [kind for kind in clause.applies if kind in claimed]
        traces = (moved(trace, kind) for kind in kinds for trace in given)
        for trace in fitted((t for t in traces if t is not None), under_test.adapter):
            under_test.judge(trace, "example")


def _dialects(chapters: Collection[str]) -> Iterator[Check]:
    """One for each chapter and each of its dialects that has traces on its kind."""
    for chapter in chapters:
        for name in dialects(chapter):
            traces = [t for t in map(from_sentence, DIALECTS[name].traces) if t.kind == chapter]
            if traces:
                run = partial(_judge_dialect, name=name, traces=traces)
                yield Check(f"{chapter}/dialect/{name}", chapter, frozenset({chapter}), run)


def _judge_dialect(under_test: AdapterUnderTest, name: str, traces: list[Trace]) -> None:
    """Judge the traces where the dialect is declared."""
    kind = traces[0].kind
    if name in under_test.adapter.chapters[kind].dialects:
        under_test.judge_all(under_test.fitting(traces), "explore", kind)
