"""A law of the buckets is broken by a cache that breaks it."""

from __future__ import annotations

from typing import Any

import pytest

from kvconform.laws.registry import LAWS
from kvconform.mutants.planting import having
from kvconform.mutants.real.bucket import CountedWhenAsked, ZerosSeen
from kvconform.suite import checks
from kvref.bucket import Bucket
from support.local_adapter import LocalBench


class SeesZeros(Bucket):
    """Its graphs see the zeros behind the rows."""

    graph = ZerosSeen


class ForgottenOnRefresh(Bucket):
    """A refresh leaves the newest row out."""

    def bind(self, refresh: bool) -> None:
        super().bind(refresh)
        if refresh and self.past_ > 1:
            self.past_ -= 1


BROKEN = {
    "BUCKET-39": SeesZeros,
    "BUCKET-40": SeesZeros,
    "BUCKET-41": ForgottenOnRefresh,
    "BUCKET-42": CountedWhenAsked,
}
"""The clause of each law, and a cache that breaks it."""


def judged(clause: str, bucket: Any) -> LocalBench:
    """A bench that has judged the reference, with this bucketed cache, by the law of a clause."""
    bench = LocalBench(having(bucket=bucket)(), traces=60)
    checks.law(bench, next(law for law in LAWS if law.clause == clause))
    return bench


@pytest.mark.parametrize("clause", BROKEN)
def test_a_law_is_broken_by_who_breaks_it(clause: str) -> None:
    assert clause in judged(clause, BROKEN[clause]).tally.own


@pytest.mark.parametrize("clause", BROKEN)
def test_a_law_is_not_broken_by_who_keeps_it(clause: str) -> None:
    assert clause not in judged(clause, Bucket).tally.own
