"""Checks from walks and from lives at real sizes. A walk does each operation of a kind after each other one, at
each scale."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from kvconform.checks.check import Check
from kvconform.generate import concerning, frozen_traces
from kvconform.generate.frozen_traces import LIVES
from kvconform.generate.given_walks import given
from kvconform.generate.strategies.walk_moves import BESIDE, LATENT, MANY, PROMPTS, SCALES, Scale
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS
from kvspec.registry import KINDS

WIDE = (LATENT, MANY, BESIDE)
"""Scales that lie beyond boundaries of geometry alone."""


def checks(chapters: Collection[str] = CHAPTERS) -> Iterator[Check]:
    """One for each kind and scale, and one for the lives of a kind."""
    for kind in (chapter for chapter in chapters if chapter in KINDS):
        for scale in SCALES:
            run = partial(_judge, kind=kind, scale=scale)
            yield Check(f"{kind}/walk/{scale.name}", kind, frozenset({kind}), run, takes_long=scale is PROMPTS)
        if frozen_traces.walks_path(kind).is_file():
            yield Check(f"{kind}/walk/{LIVES}", kind, frozenset({kind}), partial(_judge_lives, kind=kind))


def _judge_lives(under_test: AdapterUnderTest, kind: str) -> None:
    """Judge what is left of its lives where an adapter claims less."""
    traces = concerning.some(frozen_traces.walks(kind, LIVES), under_test.clauses)
    under_test.judge_all(under_test.fitting(traces), "walk", kind)


def _judge(under_test: AdapterUnderTest, kind: str, scale: Scale) -> None:
    """Walk by what the adapter claims, so that what it lacks leaves no gaps. Clauses that are asked for alone have
    their own examples at real geometries, see `geometry`."""
    if under_test.clauses and scale in WIDE:
        return
    chapters = frozenset(under_test.adapter.chapters)
    traces = given(kind, chapters, scale, under_test.seed, under_test.few)
    under_test.judge_all(under_test.fitting(concerning.some(traces, under_test.clauses)), "walk", kind)
