"""Checks of large sizes: each boundary of each size that a configuration or an operation has."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from kvconform.checks.check import Check
from kvconform.generate.claims.fit_to_adapter import fitted, shut_out
from kvconform.generate.large.boundaries import Size, sizes, too_large
from kvconform.runner.under_test import AdapterUnderTest
from kvconform.runner.verdict.tally import empty_coverage
from kvspec.contract import CHAPTERS
from kvspec.trace import Trace

SHARE = 12
"""A run of few traces takes one boundary in this many."""


def checks(chapters: Collection[str] = CHAPTERS) -> Iterator[Check]:
    """One for each size."""
    for size in (size for size in sizes() if size.chapter in chapters):
        name = f"{size.chapter}/large/{size.name.replace(' ', '-')}"
        any_of = (frozenset(size.on),) if size.on else ()
        yield Check(name, size.chapter, size.needs, partial(_judge, size=size), any_of=any_of, takes_long=True)


def _judge(under_test: AdapterUnderTest, size: Size) -> None:
    """Judge its traces, and note which boundaries they met."""
    of = f"large {size.chapter}"
    met = under_test.tally.coverage.setdefault(of, empty_coverage()).sizes.setdefault(size.name, [])
    every = SHARE if under_test.few else 1
    given, suiting = list[Trace](), list[Trace]()
    for boundary, trace in [*size.traces(under_test.seed, under_test.adapter.chapters)][
        under_test.seed % every :: every
    ]:
        if too_large(boundary, trace, under_test.adapter):
            break
        judged = list(fitted([trace], under_test.adapter))
        given, suiting = [*given, trace], [*suiting, *judged]
        under_test.judge_all(judged, "large", size.chapter)
        if under_test.budget_used >= 1 or under_test.cut_short:
            break
        met += [boundary] if judged and _whole(trace, judged[0]) else []
    if why := shut_out(given, suiting, size.chapter, under_test.adapter):
        under_test.tally.shuts_out(under_test.check, why)


def _whole(trace: Trace, judged: Trace) -> bool:
    """Tell whether a trace that was fitted to an adapter still meets its boundary: only widths and dtype differ."""
    free = {"dtype": trace.config.dtype, "k_dim": trace.config.k_dim, "v_dim": trace.config.v_dim}
    same = judged.one_by_one().ops == trace.one_by_one().ops
    return same and judged.config.changed(**free) == trace.config
