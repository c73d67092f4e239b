"""Worked examples and explored traces that are frozen: a run would make them, and the reference answers so."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.generate import frozen_traces
from kvconform.generate.amounts import QUICK_TRACES, SEED
from kvconform.generate.frozen_traces import DRAWN
from kvconform.generate.registry import explorations
from kvconform.generate.strategies import sample
from kvconform.generate.variations import VARIATIONS
from kvconform.judge import storage_trial, trial
from kvconform.oracle.reference import claims
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS
from kvspec.reading.clauses import examples_of
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.slow import one_in
from tools import freeze_traces

SHARE = 5
"""One worked example in this many is answered again."""


def told(trace: Trace) -> tuple[Any, ...]:
    return trace.kind, trace.config, freeze_traces.text(trace)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_what_is_frozen_is_what_a_quick_run_explores(chapter: str) -> None:
    """Else `python -m tools.freeze_vectors traces --write` makes it anew."""
    if frozen_traces.drawn_by(chapter) != version("hypothesis"):
        pytest.skip("another release of Hypothesis draws other traces")
    for exploration in explorations([chapter]).get(chapter, ()):
        frozen = frozen_traces.explored(chapter, exploration.name)
        drawn = sample.some(exploration.drawn(CHAPTERS), exploration.number(QUICK_TRACES), SEED)
        varied = {form.name: [*form.suiting(form.some(drawn), claims())] for form in VARIATIONS}
        made = {DRAWN: drawn, **varied}
        long = max(len(freeze_traces.text(t)) for traces in made.values() for t in traces) > freeze_traces.LONGEST
        assert bool(frozen) != long
        for form, traces in frozen.items():
            assert [*map(told, traces)] == [*map(told, made[form])], (exploration.name, form)


@pytest.mark.parametrize("chapter", one_in(3, CHAPTERS))
def test_the_reference_answers_as_is_frozen(chapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_trial, "CitingReference", None)  # so that there is no oracle to ask
    examples = [frozen_traces.example(chapter, worked) for worked in [*examples_of(chapter)][::SHARE]]
    explored = [
        t
        for e in explorations([chapter]).get(chapter, ())
        for traces in frozen_traces.explored(chapter, e.name).values()
        for t in traces
    ]
    for trace in [t for t in examples if t.frozen] + explored:
        seen = trial.on(trace, partial(Session, Reference()), claims(), watch=bool(trace.frozen.states))
        assert seen.by_hash and not seen.failed


def test_examples_that_say_what_operations_cost_are_read_line_by_line() -> None:
    each = [frozen_traces.example("residency", worked) for worked in examples_of("residency")]
    assert any(trace.frozen for trace in each) and any(trace.frozen is None for trace in each)


@pytest.mark.parametrize("chapter", one_in(9, CHAPTERS))
def test_as_many_states_are_counted_as_the_oracle_meets(chapter: str) -> None:
    for exploration in explorations([chapter]).get(chapter, ()):
        known = frozen_traces.explored(chapter, exploration.name)
        if known:
            counted = [coverage(exploration, each) for each in (known, frozen_traces.NONE)]
            assert counted[0] == counted[1]


class InProcess(AdapterUnderTest):
    """The reference, in this process."""

    def session(self, observe: tuple[str, ...]) -> Any:
        return Session(Reference(), observe)


def nothing() -> Any:
    """Where traces are frozen no strategy is made."""
    raise AssertionError("a strategy was made")


def coverage(exploration: Any, known: Any) -> Any:
    """What a run counts of an exploration."""

    class Nobody:
        has_grown = False

    under_test = InProcess(Nobody(), claims(), traces=QUICK_TRACES)  # type: ignore[arg-type]
    with under_test.judging("x") as tally:
        number = exploration.number(QUICK_TRACES)
        drawn = nothing if known else partial(exploration.drawn, CHAPTERS)
        under_test.explore(drawn, "x", number, known)
    return tally.coverage
