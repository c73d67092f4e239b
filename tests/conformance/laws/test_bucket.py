"""A law of the buckets is broken by a cache that breaks it."""

from __future__ import annotations

from typing import Any

import pytest

from kvconform.checks import laws
from kvconform.laws.registry import LAWS
from kvconform.mutants.planting import having
from kvconform.mutants.real.bucket import CountedWhenAsked, ZerosSeen
from kvref.bucket import Bucket
from support.local_adapter import LocalAdapter


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


def judged(clause: str, bucket: Any) -> LocalAdapter:
    """An adapter under test: the reference, with this bucketed cache, judged by the law of a clause."""
    under_test = LocalAdapter(having(bucket=bucket)(), traces=60)
    laws.judge(under_test, next(law for law in LAWS if law.clause == clause))
    return under_test


@pytest.mark.parametrize("clause", BROKEN)
def test_a_law_is_broken_by_who_breaks_it(clause: str) -> None:
    assert clause in judged(clause, BROKEN[clause]).tally.own


@pytest.mark.parametrize("clause", BROKEN)
def test_a_law_is_not_broken_by_who_keeps_it(clause: str) -> None:
    assert clause not in judged(clause, Bucket).tally.own
