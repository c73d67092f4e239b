"""A law of the buckets is broken by a cache that breaks it."""

from __future__ import annotations

from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.bugs.known_bugs import known_bugs
from kvconform.bugs.planting import having
from kvconform.checks import laws
from kvconform.laws.registry import LAWS
from kvref.caches.bucket import Bucket
from support.running.local_adapter import LocalAdapter, fails
from support.slow import one_in


class ForgottenOnRefresh(Bucket):
    """A refresh leaves the newest row out."""

    def bind(self, refresh: bool) -> None:
        super().bind(refresh)
        if refresh and self.past_ > 1:
            self.past_ -= 1


BROKEN = {
    "BUCKET-39": known_bugs()["PAD-09/ZerosSeen"].adapter,
    "BUCKET-40": known_bugs()["PAD-09/ZerosSeen"].adapter,
    "BUCKET-41": having(bucket=ForgottenOnRefresh),
    "BUCKET-42": known_bugs()["POS-05/CountedWhenAsked"].adapter,
}
"""The clause of each law, and what makes the reference with a cache that breaks it."""


def judged(clause: str, adapter: Any) -> LocalAdapter:
    """An adapter under test, judged by the law of a clause."""
    under_test = LocalAdapter(adapter, traces=60)
    laws.judge(under_test, next(law for law in LAWS if law.clause == clause))
    return under_test


@pytest.mark.parametrize("clause", one_in(2, BROKEN))
def test_a_law_is_broken_by_who_breaks_it(clause: str) -> None:
    tally = judged(clause, BROKEN[clause]()).tally
    assert fails(clause, tally) or clause in tally.early


@pytest.mark.parametrize("clause", one_in(2, BROKEN))
def test_a_law_is_not_broken_by_who_keeps_it(clause: str) -> None:
    assert not fails(clause, judged(clause, Reference()).tally)
