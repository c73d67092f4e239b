"""Large traces and other forms of traces: all boundaries are met, planted bugs are found by three seeds, runs are
judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kvadapters.reference import Reference
from kvconform.bugs.known_bugs import common_in
from kvconform.bugs.mutant import Mutant
from kvconform.bugs.planting import having
from kvconform.generate import frozen_large
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.generate.large import calls
from kvconform.generate.large.boundaries import BOUNDARIES, Size, sizes
from kvconform.generate.registry import explorations
from kvconform.generate.shrink.shrink import first_of, shrink
from kvconform.generate.strategies import sample
from kvconform.generate.variations import alike, blind, inputs
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvref.caches.growing import Growing
from kvspec.contract import Description, description
from kvspec.errors import Refused
from kvspec.notation import from_sentence, sentence
from kvspec.session.driver import Session
from kvspec.trace import Trace, from_json
from support.slow import counts, one_in
from tools.freezing import large as freeze_large
from tools.freezing.covers import answers

SEEDS = 0, 1, 2
ABOUT = description(Reference().describe())
ALL = {f"{size.chapter} {size.name}": size for size in sizes()}
UNSEEN = list(common_in("unseen", "unseen_beside"))
"""Bugs that show while nobody looks, or where rows are alike."""


def judged(trace: Trace, adapter: object, about: Description = ABOUT) -> TrialResult:
    level = trial.level_of(trace, about)
    return trial.run(trace, Session(adapter, trial.observables(trace, about, level)), about, level)


def explored(chapter: str, seed: int) -> list[Trace]:
    return [t for e in explorations()[chapter] for t in sample.some(e.strategy(), 60, seed)]


def finds(mutant: Mutant, traces: list[Trace]) -> TrialResult | None:
    return next(_failed(mutant, traces), None)


def blames(mutant: Mutant, traces: list[Trace]) -> TrialResult | None:
    """The first of these trials that blames a clause which the mutant breaks."""
    return next((seen for seen in _failed(mutant, traces) if set(seen.blamed) & set(mutant.clauses)), None)


def _failed(mutant: Mutant, traces: list[Trace]) -> Iterator[TrialResult]:
    adapter = mutant.adapter()
    return (seen for t in traces if (seen := judged(t, adapter)).failed)


def large(mutant: Mutant, seed: int) -> list[Trace]:
    return [t for size in ALL.values() if size.chapter in mutant.chapters for _, t in size.traces(seed)]


def test_a_boundary_is_each_power_and_its_neighbours() -> None:
    assert {1, 2, 15, 16, 17, 511, 512, 513, 4097, 65535, 65537} <= set(BOUNDARIES)
    assert max(ALL["ring window"].boundaries) == 65537
    assert {80, 96, 576} <= set(ALL["attention k_dim"].boundaries)


@pytest.mark.parametrize("name", ALL)
def test_each_boundary_has_a_trace_that_can_be_replayed_and_written_down(name: str) -> None:
    traces = dict(ALL[name].traces(0))
    assert tuple(traces) == ALL[name].boundaries
    for trace in list(traces.values())[::7]:
        assert from_json(trace.to_json()) == trace
        assert sentence(from_sentence(sentence(trace))) == sentence(trace)


@pytest.mark.parametrize("name", one_in(8, ALL))
def test_the_reference_does_what_large_traces_ask(name: str) -> None:
    size: Size = ALL[name]
    for boundary, trace in size.traces(1):
        if boundary <= 513:
            assert not judged(trace, Reference()).failed, sentence(trace)


@pytest.mark.parametrize("every", counts(31, 1))
@pytest.mark.parametrize("chapter", dict.fromkeys(size.chapter for size in ALL.values()))
def test_what_is_frozen_is_what_the_reference_answers_to_the_traces_of_a_run(chapter: str, every: int) -> None:
    """Else `python -m tools.freeze_vectors large --write` makes it anew."""
    assert [*frozen_large.read(chapter)] == [*dict.fromkeys(freeze_large.sentences(chapter))]
    for said, frozen in [*frozen_large.read(chapter).items()][::every]:
        trace = frozen_large.trace(chapter, said)
        assert trace.frozen == frozen == answers(trace, trace.ops), said


def test_large_traces_of_another_seed_are_not_frozen_unless_they_are_the_same() -> None:
    frozen = [trace.frozen for _, trace in ALL["ring window"].traces(1)]
    assert None in frozen


def test_such_bugs_are_planted_in_every_chapter_with_large_traces() -> None:
    bugs = [*common_in("at_scale", "snapshots"), *UNSEEN]
    assert len(bugs) >= 48
    sizes = {f"{recipe.chapter} {recipe.size}" for recipe in calls.RECIPES}  # theirs: test_large_calls
    others = {size.chapter for name, size in ALL.items() if name not in sizes}
    assert {chapter for bug in bugs for chapter in bug.chapters} >= others


@pytest.mark.parametrize("mutant", one_in(60, reversed([*common_in("at_scale")])), ids=lambda m: m.id)
def test_what_begins_beyond_a_size_is_found_by_three_seeds(mutant: Mutant) -> None:
    for seed in SEEDS:
        assert blames(mutant, large(mutant, seed)), seed


@pytest.mark.parametrize("mutant", one_in(8, UNSEEN), ids=lambda m: m.id)
def test_what_shows_while_nobody_looks_or_where_rows_are_alike_is_found_by_three_seeds(mutant: Mutant) -> None:
    for seed in SEEDS:
        traces = [t for chapter in mutant.chapters for t in explored(chapter, seed)]
        assert blames(mutant, [*map(blind, traces[::2]), *map(alike, traces[::3])]), seed


@pytest.mark.parametrize("mutant", one_in(6, common_in("inputs")), ids=lambda m: m.id)
def test_what_takes_all_arrays_for_plain_is_found_by_three_seeds_in_other_forms_alone(mutant: Mutant) -> None:
    for seed in SEEDS:
        traces = [t for chapter in mutant.chapters for t in explored(chapter, seed)]
        assert blames(mutant, [*map(inputs, traces[::4])]), seed
    assert not finds(mutant, [*traces[:20], *map(blind, traces[:20]), *map(alike, traces[:20])])


@pytest.mark.parametrize("chapter", one_in(8, explorations()))
def test_the_reference_passes_blind_or_with_rows_that_are_alike(chapter: str) -> None:
    for trace in explored(chapter, 3)[:10]:
        assert not judged(blind(trace), Reference()).failed, sentence(blind(trace))
        assert not judged(alike(trace), Reference()).failed, sentence(alike(trace))
        assert not judged(inputs(trace), Reference()).failed, sentence(inputs(trace))
        visible = ABOUT.at_most("visible")
        assert not judged(blind(trace), Reference(), visible).failed, sentence(blind(trace))


def test_a_refusal_that_is_wrong_within_a_run_differs() -> None:
    class Refusing(Growing):
        def rewind(self, to: int) -> None:
            raise Refused("CACHE-7", "never")

    seen = judged(from_sentence("growing: run 2 {append 1; rewind 0; append 1}"), having(growing=Refusing)())
    assert seen.failed
    assert seen.steps[0][1].values["failed"] == [1, 4]


def test_an_engine_that_takes_no_runs_is_asked_one_by_one_as_far_as_that_is_possible() -> None:
    plain = replace(ABOUT, runs=False)
    traces = [from_sentence(f"growing: run {run}") for run in ("3 {append 1; ask 0}", "1 {append 9000; ask 0}")]
    assert [sentence(t) for t in fitted(traces, plain)] == [
        "growing: append 1; ask 0; append 1; ask 0; append 1; ask 0"
    ]


def test_a_trace_that_no_record_could_hold_is_left_out() -> None:
    """Where the last operation of a run is not claimed, the one before is observed: here 9,000 rows by 9,000."""
    claims = {"growing": {"level": "visible", "without": ["rewind"]}}
    unable = description({**Reference().describe(), "chapters": claims})
    traces = [from_sentence(f"growing: run 1 {{append {n}; rewind 0}}") for n in (5, 9000)]
    assert [sentence(t) for t in fitted(traces, unable)] == ["growing: run 1 {append 5}"]


def test_a_cache_is_given_no_more_rows_than_it_declares() -> None:
    said = {**Reference().describe(), "limits": {"rows": 12}}
    given = (
        "append 12",
        "append 8; rewind 0; append 4",
        "run 6 {append 1; append 1}",
        "append 9; open B; B: append 9",
    )
    more = "append 13", "append 8; rewind 0; append 5", "run 7 {append 1; append 1}", "append 9; attend 4"
    traces = [from_sentence(f"growing: {ops}") for ops in (*given, *more)]
    assert list(fitted(traces, description(said))) == traces[: len(given)]
    assert description(said).to_json()["limits"]["rows"] == 12


def test_a_batch_is_given_no_more_columns_than_it_declares() -> None:
    said = description({"name": "few", "chapters": {"ragged": "visible"}, "limits": {"rows": 5}})
    traces = [from_sentence(f"ragged batch=2 padding=left: feed 3,2; feed {lengths}") for lengths in ("0,2", "0,3")]
    assert list(fitted(traces, said)) == traces[:1]


def test_heads_are_fitted_to_those_that_a_cache_declares() -> None:
    said = {**Reference().describe(), "limits": {"heads": 3}}
    traces = [from_sentence(f"growing kv_heads={heads}: append 1") for heads in (2, 3, 1023)]
    assert [t.config.kv_heads for t in fitted(traces, description(said))] == [2, 3, 3]
    assert description(said).to_json()["limits"]["heads"] == 3


def test_a_failing_size_becomes_small_and_says_from_which_on() -> None:
    mutant = next(m for m in common_in("at_scale") if m.id.endswith("/WindowOfAThousand"))
    adapter = mutant.adapter()

    def fails(trace: Trace) -> int:
        seen = judged(trace, adapter)
        return len(seen.steps) if seen.failed else 0

    short = shrink(from_sentence("ring window=4096 step=4096: run 1 {append 4095; append 1}; append 1"), fails)
    assert short.config.window == 1025
    assert "window from 1025 on" in first_of(short, fails)


def test_blind_traces_end_with_a_look_at_every_cache_of_one_sequence() -> None:
    ring = "window=2 kind=ring"
    trace = from_sentence(f"growing: append 2; view; open B {ring}; B: append 1; ask 1")
    run = from_sentence(f"growing: run 1 {{append 2; open B {ring}; B: append 1}}")
    assert blind(trace).ops[:1] == run.ops
    assert sentence(blind(trace)).endswith("}; append 1; view; B: append 1; B: view")
