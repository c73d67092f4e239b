"""Checks at the geometries of released models: every operation of a kind of cache, far beyond small sizes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from kvconform.checks.check import Check
from kvconform.generate import concerning, frozen_traces
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.generate.given_walks import left_over
from kvconform.generate.real_geometry import GEOMETRIES, within
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS
from kvspec.reading.clauses import index
from kvspec.registry import KINDS, LETTERS, opened


def checks(chapters: Collection[str] = CHAPTERS) -> Iterator[Check]:
    """Give one check for each kind of cache, and one more for each kind of `IN_FORMS`."""
    for kind in (chapter for chapter in chapters if chapter in KINDS):
        yield Check(f"{kind}/geometry/examples", kind, frozenset({kind}), partial(_judge, kind=kind))
    for kind in IN_FORMS if FORMS in chapters else ():
        needs = frozenset({FORMS, kind})
        yield Check(f"{FORMS}/geometry/{kind}", FORMS, needs, partial(_judge_in_forms, kind=kind))


FORMS = LETTERS["ROW"]
"""The chapter of forms."""

IN_FORMS = tuple(kind for kind in KINDS if opened(kind).forms_at_sizes)
"""The kinds that are judged in each sort of form, with many heads and with many sequences."""


def _judge_in_forms(under_test: AdapterUnderTest, kind: str) -> None:
    """Judge caches of many heads and of many sequences in each sort of form.

    The worked examples do not do this: their forms may not fit other widths.
    """
    from kvconform.generate.strategies import forms  # needs Hypothesis, which those who judge no form may lack

    traces = concerning.some(forms.at_sizes(kind, under_test.adapter.chapters), under_test.clauses)
    under_test.judge_all(under_test.fitting(traces), "geometry", FORMS)


def _judge(under_test: AdapterUnderTest, kind: str) -> None:
    """Judge its traces; of clauses that are asked for alone their own worked examples."""
    if under_test.clauses:
        examples = [e for c in under_test.clauses for e in index()[c].examples if e.trace.kind == kind]
        geometries = [within(geometry, under_test.adapter) for geometry in GEOMETRIES]
        each = (frozen_traces.example_at(example, geometry) for geometry in geometries for example in examples)
        under_test.judge_all(under_test.fitting(filter(None, each)), "geometry", kind)
    else:
        _judge_kind(under_test, kind)


def _judge_kind(under_test: AdapterUnderTest, kind: str) -> None:
    """Judge what each operation does; note which boundaries were met, and which the adapter's claims and limits
    shut out."""
    from kvconform.generate.geometry_traces import met  # a run on a clause judges its own examples

    wanted, found = set[tuple[str, int]](), set[tuple[str, int]]()
    for geometry in GEOMETRIES:
        given = left_over(kind, within(geometry, under_test.adapter), frozenset(under_test.adapter.chapters))
        judged = list(fitted(given, under_test.adapter))
        under_test.judge_all(judged, "geometry", kind)
        wanted |= met(left_over(kind, geometry), kind)
        found |= met(judged, kind)
    sizes = under_test.tally.coverage[f"geometry {kind}"].sizes
    for size, least in sorted(wanted):
        if (size, least) in found:
            sizes.setdefault(size, []).append(least)
        else:
            under_test.tally.shuts_out(f"{kind}/geometry/{size}-{least}", f"takes no {size} of {least} or more")
