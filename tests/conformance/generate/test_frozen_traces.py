"""Worked examples and explored traces that are frozen: a run would make them, and the reference answers so."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.generate import frozen_traces
from kvconform.generate.amounts import CLAUSE_TRACES, QUICK_TRACES, SEED, TRACES
from kvconform.generate.registry import explorations
from kvconform.generate.strategies import sample
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.variations import VARIATIONS
from kvconform.judge import trial
from kvconform.judge.levels import storage_trial
from kvconform.oracle.reference import claims
from kvconform.runner.under_test import AdapterUnderTest
from kvspec import notation
from kvspec.contract import CHAPTERS
from kvspec.reading.clauses import examples_of
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.slow import counts, one_in
from tools.freezing import traces as freeze_traces

SHARE = 5
"""One worked example in this many is answered again."""


def told(trace: Trace) -> tuple[Any, ...]:
    return trace.kind, trace.config, freeze_traces.text(trace)


@pytest.mark.parametrize("most", counts(CLAUSE_TRACES, TRACES))
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_what_is_frozen_is_what_a_run_explores(chapter: str, most: int) -> None:
    """Else `python -m tools.freeze_vectors traces --write` makes it anew. A run of fewer traces takes the first."""
    if frozen_traces.drawn_by(chapter) != version("hypothesis"):
        pytest.skip("another release of Hypothesis draws other traces")
    for exploration in explorations([chapter]).get(chapter, ()):
        drawn = sample.some(exploration.drawn(CHAPTERS), exploration.number(most), SEED)
        for amount in (n for n in freeze_traces.AMOUNTS if n <= most):
            demand_frozen(chapter, exploration, drawn[: exploration.number(amount)], drawn)


def demand_frozen(chapter: str, exploration: Exploration, drawn: list[Trace], whole: list[Trace]) -> None:
    frozen = frozen_traces.explored(chapter, exploration.name, len(drawn))
    if not frozen.drawn:
        assert len(whole) < exploration.number(TRACES) or any(map(freeze_traces.is_long, whole))
        return
    assert [*map(told, frozen.drawn)] == [*map(told, drawn)]
    for form in VARIATIONS:
        for place in form.places(len(drawn)):
            made, known = form.of(drawn[place]), frozen.varied[form.name].get(place)
            assert freeze_traces.is_long(made) if known is None else told(known) == told(made)


@pytest.mark.parametrize("chapter", ["growing", "draft"])
def test_a_run_of_fewer_traces_draws_the_first(chapter: str) -> None:
    for exploration in explorations([chapter])[chapter]:
        whole, fewer = (sample.some(exploration.drawn(CHAPTERS), n, SEED) for n in (CLAUSE_TRACES, QUICK_TRACES))
        assert [*map(told, fewer)] == [*map(told, whole[:QUICK_TRACES])]


@pytest.mark.parametrize("exploration", ["scored/growing", "growing"])
def test_of_fewer_frozen_traces_than_a_run_draws_none_is_taken(exploration: str) -> None:
    whole = frozen_traces.explored("attention", exploration, TRACES)
    assert len(whole.drawn) == TRACES
    assert frozen_traces.explored("attention", exploration, TRACES + 1) is frozen_traces.NONE


@pytest.mark.parametrize("chapter", one_in(4, CHAPTERS))
def test_the_reference_answers_as_is_frozen(chapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_trial, "CitingReference", None)  # so that there is no oracle to ask
    examples = [frozen_traces.example(chapter, worked) for worked in [*examples_of(chapter)][::SHARE]]
    explored = [
        t
        for e in explorations([chapter]).get(chapter, ())
        for explored in [frozen_traces.explored(chapter, e.name, e.number(CLAUSE_TRACES))]
        for t in (*explored.drawn, *(t for varied in explored.varied.values() for t in varied.values()))
    ]
    for trace in [t for t in examples if t.frozen] + explored:
        seen = trial.on(trace, partial(Session, Reference()), claims(), watch=bool(trace.frozen.states))
        assert seen.by_hash and not seen.failed


def test_examples_that_say_what_operations_cost_are_read_line_by_line() -> None:
    each = [frozen_traces.example("residency", worked) for worked in examples_of("residency")]
    assert any(trace.frozen for trace in each) and any(trace.frozen is None for trace in each)


@pytest.mark.parametrize("amount", counts(QUICK_TRACES, CLAUSE_TRACES))
@pytest.mark.parametrize("chapter", one_in(10, CHAPTERS))
def test_as_many_states_are_counted_as_the_oracle_meets(chapter: str, amount: int) -> None:
    for exploration in explorations([chapter]).get(chapter, ()):
        known = frozen_traces.explored(chapter, exploration.name, exploration.number(amount))
        if known.drawn:
            counted = [coverage(exploration, each, amount) for each in (known, frozen_traces.NONE)]
            assert counted[0] == counted[1]


class InProcess(AdapterUnderTest):
    """The reference, in this process."""

    def session(self, observe: tuple[str, ...]) -> Any:
        return Session(Reference(), observe)


def as_read(trace: Trace) -> Trace:
    """The same trace, its operations as they are read from their text: transitions are told apart by it."""
    return replace(trace, ops=tuple(notation.operations(freeze_traces.text(trace))))


def nothing() -> Any:
    """Where traces are frozen no strategy is made."""
    raise AssertionError("a strategy was made")


def coverage(exploration: Any, known: Any, amount: int) -> Any:
    """What a run counts of an exploration."""

    class Nobody:
        has_grown = False

    under_test = InProcess(Nobody(), claims(), traces=amount)  # type: ignore[arg-type]
    with under_test.judging("x") as tally:
        number = exploration.number(amount)
        drawn = nothing if known.drawn else lambda: exploration.drawn(CHAPTERS).map(as_read)
        under_test.explore(drawn, "x", number, known)
    return tally.coverage
