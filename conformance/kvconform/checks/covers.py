"""Checks from covers: every transition of small state graphs, frozen as traces."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from random import Random

from kvconform.checks.check import Check
from kvconform.generate import concerning, frozen_covers
from kvconform.generate.frozen_covers import Cover
from kvconform.generate.registry import planned
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS
from kvspec.errors import NotWhole


def checks(chapters: Collection[str] = CHAPTERS) -> Iterator[Check]:
    """One for each frozen cover of each chapter."""
    plans = planned(chapters)
    for chapter in chapters:
        covers = frozen_covers.load(chapter)
        _demand_frozen(chapter, [plan.name for plan in plans[chapter]()] if chapter in plans else [], covers)
        for cover in covers:
            name = cover.name.removeprefix(f"{chapter} ").replace(" ", "-")
            needs, run = (
                frozenset((cover.start.kind, chapter)),
                partial(_judge_sample, cover=cover, chapter=chapter),
            )
            yield Check(f"{chapter}/cover/{name}", chapter, needs, run)


def _demand_frozen(chapter: str, names: list[str], covers: Iterable[Cover]) -> None:
    """Raise NotWhole unless each plan of the chapter is frozen, and nothing else is."""
    for name in sorted({*names} ^ {cover.name for cover in covers}):
        frozen, again = f"kvspec/vectors/{frozen_covers.path(chapter).name}", "tools.freeze_vectors covers --write"
        lacks = f"{frozen} lacks the plan {name!r} of the chapter: run `python -m {again} --chapter {chapter}`"
        raise NotWhole(lacks if name in names else f"{frozen} has the cover {name!r}, which is no plan")


def _judge_sample(under_test: AdapterUnderTest, cover: Cover, chapter: str) -> None:
    """Judge a cover, or its share of a sample of the chapter's traces that concern the clauses asked for."""
    concerned = concerning.cover(cover, under_test.clauses)
    share = under_test.cover_traces / max(1, concerning.of_chapter(chapter, under_test.clauses))
    judge(under_test, sampled(concerned, share) if 0 < share < 1 else concerned)


def sampled(cover: Cover, share: float) -> Cover:
    """The same cover with a share of its traces, at least one if there are some, the same each time."""
    chosen = Random(cover.name).sample(range(len(cover.lines)), math.ceil(share * len(cover.lines)))
    return replace(cover, lines=tuple(cover.lines[i] for i in sorted(chosen)))


def judge(under_test: AdapterUnderTest, cover: Cover) -> None:
    """Judge the traces of a cover, shortest first."""
    kind = cover.start.kind
    traces = under_test.fitting(cover.traces())
    under_test.judge_all(traces, "cover", kind)
    whole = under_test.tally.failing == 0 and not under_test.cut_short
    if whole and [t.ops for t in traces] == [t.ops for t in cover.traces()]:
        counts = under_test.tally.coverage[f"cover {kind}"]
        counts.states += cover.states
        counts.transitions += cover.transitions
