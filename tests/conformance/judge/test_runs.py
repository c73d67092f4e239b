"""Runs: what follows from how a cache was is judged only where the harness has seen how it was."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from kvadapters.reference import Reference
from kvconform.judge import trial
from kvref.caches.growing import Growing
from kvspec.contract import description
from kvspec.notation import from_sentence
from kvspec.session.driver import Session
from support.running.local_adapter import LocalAdapter

UNSEEN = {
    "the run ends with a round of another cache": "run 1 {open C; attend 2; speculate r C}; append 1",
    "the run ends with an opening that is refused": "run 1 {open C; C: append 6; open C step=0}; C: append 1",
}
"""Traces in which something was appended that nobody observed, and the next append has to copy it."""


@pytest.mark.parametrize("ops", UNSEEN.values(), ids=UNSEEN)
def test_what_nobody_observed_costs_no_adapter_its_verdict(ops: str) -> None:
    seen = LocalAdapter(Reference()).run(from_sentence(f"growing kv_heads=1 step=2: {ops}"))
    assert not seen.failed, [d.message for d in seen.differences]


class Preallocates(Growing):
    """Holds room for eight rows from the start."""

    def held(self) -> int:
        return max(super().held(), 8 * self.config.row_bytes)


class Preallocating(Reference):
    """Growing caches that hold memory when they are opened."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "growing": Preallocates}


def test_what_a_cache_held_when_it_was_opened_is_unknown_after_a_run_that_opens_another_in_its_place() -> None:
    trace = from_sentence("growing: open C kv_heads=1; run 1 {open C kv_heads=4; C: append 3}; C: free")
    about = description(Preallocating().describe())
    session = Session(Preallocating(), trial.observables(trace, about, "visible"))
    seen = trial.run(trace, session, about, "visible")
    assert seen.steps[0][1].values["held"] > 0
    assert not seen.failed, [d.message for d in seen.differences]


class TakesAnyRewind(Growing):
    """Goes to 0 where a rewind is refused."""

    def rewind(self, k: int) -> None:
        super().rewind(min(k, self.offset))


class Taking(Reference):
    """Growing caches that refuse no rewind."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "growing": TakesAnyRewind}


@pytest.mark.parametrize("level", ["visible", "storage"])
def test_what_is_taken_in_a_run_though_it_is_refused_blames_the_clause_that_refuses_it(level: str) -> None:
    trace, about = from_sentence("growing: run 2 {rewind 1; append 1}"), description(Taking().describe())
    seen = trial.on(trace, lambda observe: Session(Taking(), observe), about, level)
    assert seen.blamed == ("CACHE-7",), seen.differences
