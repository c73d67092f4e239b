"""Checks at the geometries of released models: every operation of a kind of cache, far beyond small sizes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kvconform.checks.check import Check
from kvconform.generate.fit_to_adapter import fitted
from kvconform.generate.geometry_traces import met, traces
from kvconform.generate.real_geometry import GEOMETRIES, within
from kvconform.runner.under_test import AdapterUnderTest
from kvconform.runner.verdict.tally import empty_coverage
from kvspec.registry import KINDS


def checks() -> Iterator[Check]:
    """One for each kind of cache."""
    for kind in KINDS:
        yield Check(f"{kind}/geometry/examples", kind, frozenset({kind}), partial(_judge, kind=kind))


def _judge(under_test: AdapterUnderTest, kind: str) -> None:
    """Judge its traces, and note which boundaries they met, and which the adapter's claims and limits shut out."""
    covered = under_test.tally.coverage.setdefault(f"geometry {kind}", empty_coverage())
    for geometry in GEOMETRIES:
        given = traces(kind, geometry)
        judged = list(fitted(traces(kind, within(geometry, under_test.adapter)), under_test.adapter))
        under_test.judge_all(judged, "geometry", kind)
        wanted, found = (met(each, kind) for each in (given, judged))
        for size, least in sorted(wanted):
            covered.sizes.setdefault(size, []).extend([least] if (size, least) in found else [])
            covered.unmet.setdefault(size, []).extend([] if (size, least) in found else [least])
