"""The hunt finds what is wrong, says by what and under which clause, and leaves alone what is right."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Literal

import numpy as np
import pytest
from msgspec import structs

from kvadapters.reference import Reference
from kvconform.bugs import trace_sources
from kvconform.bugs.known_bugs import known_bugs
from kvconform.bugs.mutant import Mutant
from kvconform.bugs.planting import having
from kvconform.bugs.time_limit import Hang, time_limit
from kvconform.bugs.trace_sources import Item
from kvconform.checks.suite import suite
from kvconform.judge.trial_result import TrialResult
from kvref.caches.growing import Growing
from kvspec.contract import Pair
from kvspec.contract.description import description
from kvspec.geometry import Array
from kvspec.notation import from_sentence, sentence
from kvspec.records.mutants import Matrix
from kvspec.trace import Trace
from kvworkshop import controls, correct_variants, hints, hunt, matrix
from support.running.local_adapter import LocalAdapter


def mutant(adapter: Any, clauses: tuple[str, ...] = ("GROW-2",), **more: Any) -> Mutant:
    """A mutant that is tried on the growing cache's traces."""
    known = {"bug_class": "GROW", "chapters": ("growing",), **more}
    return Mutant("tried", says="", clauses=clauses, adapter=adapter, **known)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A few traces of each cover, and little time for each."""
    monkeypatch.setattr(hunt, "SPREAD", 10)
    monkeypatch.setattr(hunt, "MOST", 10)
    monkeypatch.setattr(trace_sources, "TRACES", 8)
    forget()
    yield
    forget()


@pytest.fixture
def few_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of sixteen traces of the dearest sources, where all of them are tried."""
    for source in ("geometry", "walk", "large"):
        monkeypatch.setitem(trace_sources.SOURCES, source, partial(one_in_sixteen, trace_sources.SOURCES[source]))


def one_in_sixteen(source: Callable[[str], Sequence[trace_sources.Item]], chapter: str) -> Sequence[Any]:
    return source(chapter)[::16]


def forget() -> None:
    """Draw afresh."""
    for source in (trace_sources.drawn, trace_sources.explored, trace_sources.in_form):
        source.cache_clear()


def test_a_planted_bug_is_found_by_every_source_under_its_clause_on_a_short_trace() -> None:
    found = hunt.hunt(mutant(controls.Losing))
    assert found.killed and found.right and all(found.kills[s] for s in trace_sources.SOURCES)
    assert found.shortest is not None and 1 <= found.operations <= 2
    assert "GROW-2" in found.shortest.clauses and "expected" in found.shortest.message


@pytest.mark.usefixtures("few_large")
def test_a_right_cache_is_not_found_though_everything_is_tried() -> None:
    tried: list[str] = []

    class Watched(Reference):
        def open(self, kind: str, config: Any) -> Any:
            tried.append(kind)
            return super().open(kind, config)

    found = hunt.hunt(mutant(Watched, is_control=True))
    assert (found.kills, found.killed, found.right) == (dict.fromkeys(trace_sources.SOURCES), False, False)
    assert len(tried) >= len(trace_sources.examples("growing")) + 10 + 8


@pytest.mark.slow
def test_a_right_cache_at_level_visible_is_not_found_by_rows_that_are_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trace_sources, "TRACES", 60)
    forget()
    whole = mutant(correct_variants.Whole, chapters=("mask",), is_control=True)
    assert hunt.hunt(whole).kills == dict.fromkeys(trace_sources.SOURCES)


@pytest.mark.usefixtures("few_large")
def test_a_bug_that_breaks_another_clause_than_it_says_was_blamed_wrongly() -> None:
    found = hunt.hunt(mutant(controls.Losing, ("RING-10",)))
    assert found.killed and found.right is False


def test_a_trace_that_shows_a_fault_again_is_enough_and_else_it_is_hunted() -> None:
    shows, hides = (Item(from_sentence(f"growing: {words}")) for words in ("append 2", "append 0"))
    fault = mutant(controls.Losing, (), bug_class="systematic", stop_at_first_kill=True)
    again = hunt.hunt(fault, {hunt.AGAIN: (shows,)})
    assert list(again.kills) == [hunt.AGAIN] and again.shortest is not None and again.shortest.trace == shows.trace
    assert list(hunt.hunt(fault, {hunt.AGAIN: (hides,)}).kills) == ["examples"]


def test_what_showed_a_fault_is_the_worked_example_that_begins_so_or_the_trace() -> None:
    (worked, *_) = trace_sources.examples("ring")
    traces = sentence(worked.trace.cut(1)), "growing: append 2; append 3; append 4; append 5", "growing: nonsense"
    assert traces[1] not in map(sentence, (i.trace for i in trace_sources.examples("growing")))
    found = hints.again(matrix_of("systematic", traces))
    assert [found[str(n)][hunt.AGAIN][0].example is None for n in (0, 1)] == [False, True] and len(found) == 2
    assert hints.again(matrix_of("RING", traces)) == {}, "of a real bug all sources are told"


def matrix_of(bug_class: str, traces: tuple[str, ...]) -> Matrix:
    """A matrix of mutants that these traces show."""
    kills = [hunt.Kill("cover", ("GROW-2",), from_sentence("growing: append 1"), "") for _ in traces]
    mutants = [replace(mutant(controls.Losing, ()), id=str(n), bug_class=bug_class) for n in range(len(traces))]
    results = [hunt.HuntResult(m.id, {}, kill) for m, kill in zip(mutants, kills, strict=True)]
    made = matrix.made(mutants, results, 0)
    made.mutants = [structs.replace(m, trace=trace) for m, trace in zip(made.mutants, traces, strict=True)]
    return made


def test_the_first_source_is_enough_where_that_is_asked_for() -> None:
    assert list(hunt.hunt(mutant(controls.Losing, stop_at_first_kill=True)).kills) == ["examples"]


def test_a_planted_bug_that_is_found_first_is_shown_as_it_was_found() -> None:
    late = mutant(having(growing=LateAlone))
    found, whole = hunt.hunt(late, first=True), hunt.hunt(late)
    assert found.right and list(found.kills) == list(trace_sources.SOONEST)[: len(found.kills)]
    assert len(found.kills) < len(whole.kills)
    assert found.shortest == found.kills[list(found.kills)[-1]]
    assert found.operations >= whole.operations


def test_every_source_is_tried_in_either_order() -> None:
    assert sorted(trace_sources.SOONEST) == sorted(trace_sources.SOURCES)


def test_of_what_is_drawn_few_are_tried_first_where_one_kill_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: dict[bool, list[str]] = {True: [], False: []}
    for first, sources in tried.items():
        monkeypatch.setattr(hunt._Hunter, "_try", lambda self, source, item, to=sources: to.append(source))
        hunt.hunt(mutant(Reference, is_control=True), first=first)
    assert sorted(tried[True]) == sorted(tried[False])
    some = [len(list(hunt._Hunter(mutant(Reference), first).some("large"))) for first in (True, False)]
    assert some[0] < 2 * hunt.FEW < some[1] == len(trace_sources.large("growing"))


def test_no_trace_is_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def note(self: Any, source: str, item: trace_sources.Item) -> None:
        tried.append(id(item))

    monkeypatch.setattr(hunt._Hunter, "_try", note)
    hunt.hunt(mutant(Reference), {"cover": trace_sources.covers("growing")[:3]})
    assert len(tried) == len(set(tried)) > 30


@pytest.mark.parametrize("level", ["visible", "storage"])
def test_what_is_tried_of_an_adapter_is_what_a_run_of_it_judges(
    level: Literal["visible", "storage"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run and a hunt draw the same, and leave out the same."""
    judged: dict[str, list[str]] = {}

    class Noted(LocalAdapter):
        def judge(self, trace: Trace, source: str, watch: bool = False) -> TrialResult:
            judged.setdefault(source, []).append(sentence(trace))
            return super().judge(trace, source, watch)

    monkeypatch.setattr(trace_sources, "TRACES", 10)
    under_test = Noted(Reference(), traces=10)
    under_test.adapter = under_test.adapter.at_most(level)
    run = [c for c in suite().values() if re.match("mask/(explore|large)/", c.id)]
    for check in (c for c in run if c.needs <= set(under_test.adapter.chapters)):
        check.run(under_test)
    for source in ("explored", "blind", "alike", "inputs", "large"):
        items = trace_sources.SOURCES[source]("mask")
        found = (trace_sources.judged(source, item, under_test.adapter) for item in items)
        assert [sentence(t) for t in found if t] == judged.get(source.replace("explored", "explore"), [])


class Hanging(Growing):
    """Never comes back from a rewind."""

    def rewind(self, to: int) -> None:
        while True:
            time.sleep(0.01)


def test_a_cache_that_hangs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunt, "SECONDS", 0.3)
    monkeypatch.setattr("kvconform.bugs.time_limit.WAITS", 1)
    found = hunt.hunt(mutant(having(growing=Hanging), (), stop_at_first_kill=True))
    assert found.shortest is not None and found.shortest.message == "took more than 0.3 seconds"


def test_an_adapter_that_cannot_be_made_is_found() -> None:
    def broken() -> Any:
        raise ImportError("no such thing")

    found = hunt.hunt(mutant(broken))
    assert found.shortest is not None and "cannot be made: ImportError: no such thing" in found.shortest.message


class LateAlone(Growing):
    """Zeroes what it holds once there are four rows, and only then."""

    def append(self, keys: Any, values: Any) -> None:
        super().append(keys, values)
        if self.offset >= 4:
            self.rows.write(0, Pair(*(np.zeros_like(a[:, :, :1]) for a in (self.rows.keys, self.rows.values))))


def test_the_shortest_trace_is_shown_and_still_fails() -> None:
    m = mutant(having(growing=LateAlone))
    found = hunt.hunt(m)
    assert found.shortest is not None
    rows = sum(op["n"] for op in found.shortest.trace.ops if op["op"] == "append")
    assert rows >= 4 and found.operations <= 2
    seen = hunt._Hunter(m).run(found.shortest.trace)
    assert not isinstance(seen, str) and seen.failed


class Remembering(Growing):
    """Its newest row is of zeros once a cache before it, of the same adapter, was appended to."""

    before = 0

    def append(self, keys: Array, values: Array) -> None:
        super().append(*map(np.zeros_like, (keys, values)) if Remembering.before else (keys, values))
        Remembering.before += 1


def remembering() -> Reference:
    Remembering.before = 0
    return having(growing=Remembering)()


def test_a_trace_that_shows_a_bug_alone_is_better_than_one_that_shows_it_behind_others() -> None:
    hunter = hunt._Hunter(mutant(remembering))
    alone, behind = (from_sentence(f"growing: {ops}") for ops in ("append 1; append 1", "append 1"))
    kills = [hunter._try("explored", Item(trace)) for trace in (alone, behind)]
    best = hunter.shortest([kill for kill in kills if kill])
    assert all(kills) and best is not None and best.trace.ops == alone.ops


def test_only_the_time_of_the_first_thread_is_limited_and_the_alarm_is_taken_back() -> None:
    with pytest.raises(Hang), time_limit(0.1):
        time.sleep(5)
    time.sleep(0.2)
    with time_limit(5):
        pass


def test_a_run_counts_as_many_operations_as_it_repeats() -> None:
    """A run of nine operations is not shorter than two operations."""
    m = mutant(Reference, ("CACHE-8",), chapters=("ring",))
    long = from_sentence("ring window=3: run 1 {append 1; append 1; append 1; append 1; rewind 3; append 1}")
    short = from_sentence("ring window=3: append 3; append 1; rewind 3; append 1")
    assert (hunt.written(long), hunt.written(short)) == (6, 4)
    kills = [hunt.Kill("explore", ("CACHE-8",), trace, "") for trace in (long, short)]
    best = hunt._Hunter(m).shortest(kills, shorten=False)
    assert best is not None and best.trace == short


def test_large_traces_of_a_kind_that_an_adapter_does_not_claim_are_left_out() -> None:
    about = description({"chapters": {"store": {"level": "visible"}}, "name": "a store"})
    assert not any(trace_sources.judged("large", item, about) for item in trace_sources.large("growing"))


LONG = {
    "wrong-page/ForkNotYetCounted": "page kv_heads=1 page_size=2 pages=3: run 1 {admit; admit; fork 0 63;"
    " truncate 1 63; append 1 sequence=0; fork 0 1; append 2 sequence=1; truncate 1 0; append 2 sequence=2}",
    "stale-cursor/WrapsAt256": "ring kv_heads=1 window=257: append 61; append 61; append 61; append 61; append 61;"
    " pack x; carry x y BPHND page=7; unpack y; append 1",
    "wrong-head/PartsInTheOrderTheyCome": "ring kv_heads=4 window=2: append 1; pack p; open B kv_heads=2 rank=0/4;"
    " B: unpack p; B: pack q; open C kv_heads=2 rank=2/4; C: unpack p; C: pack r; collect r q t; unpack t",
}
"""Bugs, and traces of nine and ten operations that show them."""


@pytest.mark.parametrize("id_", LONG)
def test_a_long_trace_is_shortened_however_busy_the_machine(monkeypatch: pytest.MonkeyPatch, id_: str) -> None:
    """Of at most eight operations: what came in a parcel may be appended; time that others take does not count; and
    what became shorter is tried again."""
    wall = count(step=60.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(wall))
    monkeypatch.setattr(hunt, "ATTEMPTS", 20 if "Fork" in id_ else 120)
    hunter, trace = hunt._Hunter(known_bugs()[id_]), from_sentence(LONG[id_])
    result = hunter.run(trace)
    assert not isinstance(result, str) and result.failed and hunt.written(trace) > 8
    short = hunter.shortest([hunt.Kill("walk", result.blamed, trace, "")])
    assert short is not None and hunt.written(short.trace) <= 8 and set(short.clauses) & set(result.blamed)
