"""Checks of dialects: the traces that the chapters' records give for what an adapter declares.

Covers and explorations are written for the defaults and judged by the declared dialects. They rewind to any target
and append any number of rows, so they also show what a dialect does. These traces meet the boundaries of dialects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from kvconform.checks.check import Check
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS
from kvspec.notation import from_sentence
from kvspec.registry import DIALECTS, dialects
from kvspec.trace import Trace


def checks(chapters: Collection[str] = CHAPTERS) -> Iterator[Check]:
    """One for each chapter and each of its dialects that has traces on its kind."""
    for chapter in chapters:
        for name in dialects(chapter):
            traces = [t for t in map(from_sentence, DIALECTS[name].traces) if t.kind == chapter]
            if traces:
                run = partial(judge, name=name, traces=traces)
                yield Check(f"{chapter}/dialect/{name}", chapter, frozenset({chapter}), run)


def judge(under_test: AdapterUnderTest, name: str, traces: list[Trace]) -> None:
    """Judge the traces where the dialect is declared."""
    kind = traces[0].kind
    if name in under_test.adapter.chapters[kind].dialects:
        under_test.judge_all(under_test.fitting(traces), "explore", kind)
