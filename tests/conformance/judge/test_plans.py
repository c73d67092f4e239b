"""Plans of caches that grow as they like, at level storage: without a growth rule, some are wrong all the same."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import pytest

from kvadapters.reference import Reference
from kvconform.generate.registry import explorations
from kvconform.generate.strategies import sample
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvref.caches.growing import Growing
from kvref.caches.ring import Ring
from kvspec.contract import description
from kvspec.notation import from_sentence
from kvspec.session.driver import Session
from kvspec.trace import Trace


def judged(trace: Trace, caches: dict[str, Any]) -> TrialResult:
    class Made(Reference):
        """It claims that it grows as it likes."""

        made: ClassVar[dict[str, Any]] = caches

        def describe(self) -> dict[str, Any]:
            free = {"level": "storage", "grows": "free"}
            return {**super().describe(), "chapters": {"growing": free, "ring": free, "mem": "storage"}}

    Made.caches = {**Reference.caches, **caches}
    adapter = Made()
    return trial.on(trace, lambda seen: Session(adapter, seen), description(adapter.describe()))


@cache
def drawn() -> list[Trace]:
    each = [e for e in explorations()["mem"] if e.name in ("growing", "ring")]
    return [t for e in each for t in sample.some(e.drawn({"mem", e.name}), 20, seed=0)]


class PeakOfThree(Growing):
    """A plan says that the old storage is there twice."""

    def plan(self, n: int) -> Any:
        after, most = super().plan(n)
        return after, most + (self.held() if most > after else 0)


class PlansForOneLess(Growing):
    """A plan forgets a row, if that leaves something."""

    def plan(self, n: int) -> Any:
        after, most = super().plan(n)
        fits = self.offset + n <= len(self.rows) or n == 0
        less = after if fits else max(self.held(), after - self.config.row_bytes * self.config.step)
        return less, max(most, less)


class RingPeak(Ring):
    """A plan of several rows says that the old storage is there twice."""

    def plan(self, n: int) -> Any:
        after, most = super().plan(n)
        return after, most + (self.held() if n > 1 else 0)


@pytest.mark.parametrize("caches", [{}, {"growing": Growing}])
def test_a_right_plan_holds_without_a_growth_rule(caches: dict[str, Any]) -> None:
    for trace in drawn():
        assert not judged(trace, caches).failed


@pytest.mark.parametrize("caches", [{"growing": PeakOfThree}, {"growing": PlansForOneLess}, {"ring": RingPeak}])
def test_a_wrong_plan_is_found_without_a_growth_rule(caches: dict[str, Any]) -> None:
    failed = [seen for trace in drawn() if (seen := judged(trace, caches)).failed]
    assert failed
    assert {d.field for seen in failed for d in seen.differences} <= {"plan", "held"}
    assert {"MEM-2", "MEM-3", "MEM-6"} & {c for seen in failed for c in seen.blamed}


def test_a_plan_that_no_append_follows_is_looked_at() -> None:
    trace = from_sentence("growing step=1: append 3; plan 4; view")
    assert judged(trace, {"growing": PlansForOneLess}).blamed == ("MEM-2",)
    assert judged(from_sentence("growing step=1: append 3; plan 4"), {"growing": PeakOfThree}).blamed == ("MEM-2",)
