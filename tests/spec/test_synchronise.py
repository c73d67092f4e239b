"""An adapter whose calls return before their work is done is waited for where something is observed, never else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvadapters.update import from_update
from kvconform.bugs.common.unseen import Deferring
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.generate.registry import explorations
from kvconform.generate.strategies import sample
from kvconform.generate.variations import VARIATIONS
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.trace_inputs import TraceInputs
from kvref.caches.growing import Growing
from kvspec.contract import Lengths, Pair, Readable, description
from kvspec.geometry import Array, Config
from kvspec.notation import from_sentence, sentence
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.engines.array_engines import Cache, Tensor


class Queued(Deferring):
    """Appends complete late: nothing that looks does the writes that wait, only `flush`."""

    def _clear(self) -> None:
        super()._clear()
        self.looked = list[str]()

    def read(self, what: Readable) -> Pair | None:
        self.looked.append(what)
        return Growing.read(self, what)

    def lengths(self) -> Lengths:
        self.looked.append("lengths")
        return Growing.lengths(self)


class Late(Reference):
    """An asynchronous adapter with no method to wait for it."""

    caches: ClassVar[dict[str, Any]] = {"growing": Queued}
    synchronise = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self.opened = list[Queued]()

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "chapters": dict.fromkeys(("growing", "mask", "snapshot"), "storage")}

    def open(self, kind: str, config: Config) -> Any:
        self.opened.append(super().open(kind, config))  # type: ignore[arg-type]
        return self.opened[-1]


class Asynchronous(Late):
    """The same with the method."""

    waited = 0

    def synchronise(self) -> None:  # type: ignore[override]
        self.waited += 1
        for cache in self.opened:
            cache.looked.append("synchronise")
            cache.flush()


def judged(trace: Trace, adapter: Late) -> TrialResult:
    about = description(adapter.describe())
    level = trial.level_of(trace, about)
    return trial.run(trace, Session(adapter, trial.observables(trace, about, level)), about, level)


def explored() -> Iterator[Trace]:
    about = description(Asynchronous().describe())
    for each in (*explorations()["growing"], *explorations()["snapshot"]):
        traces = sample.some(each.strategy(), 24, 1)
        yield from fitted(traces, about)
        for form in VARIATIONS:
            yield from form.suiting(form.some(traces), about)


def test_a_late_adapter_with_the_method_conforms_and_without_it_is_found() -> None:
    traces = list(explored())
    assert len(traces) > 100
    assert [sentence(t) for t in traces if judged(t, Asynchronous()).failed] == []
    assert sum(judged(t, Late()).failed for t in traces) > len(traces) / 2


@pytest.mark.parametrize("words", ["growing: append 1", "growing: run 2 {append 1}", "growing: append 2; view"])
def test_before_each_look_it_is_waited_for(words: str) -> None:
    adapter = Asynchronous()
    assert not judged(from_sentence(words), adapter).failed
    looks = adapter.opened[0].looked
    assert looks.count("history") and looks.count("lengths")
    waited = [i for i, what in enumerate(looks) if what == "synchronise"]
    assert all(any(i < n for i in waited) for n, what in enumerate(looks) if what != "synchronise")


def test_within_a_run_nobody_waits_before_the_last_operation() -> None:
    few, many = Asynchronous(), Asynchronous()
    assert not judged(from_sentence("growing: run 1 {append 1; rewind 0; append 1}"), few).failed
    assert not judged(from_sentence("growing: run 90 {append 1; rewind 0; append 1}"), many).failed
    assert few.waited == many.waited > 0


@pytest.mark.parametrize("times", [1, 40])
def test_within_a_run_no_array_of_the_engine_is_read_before_the_last_operation(times: int) -> None:
    read = list[bool]()

    def elements(array: Tensor) -> Array:
        read.append(True)
        return array.elements

    adapter = from_update(
        "reads",
        kind="growing",
        make=Cache,
        update=lambda cache, *rows: cache.update(*rows),
        also=("batch", "scribble"),
        to_engine=Tensor,
        from_engine=elements,
    )
    trace = from_sentence(f"growing: run {times} {{append 1; append 1}}")
    session, inputs = Session(adapter, ("history",)), TraceInputs(trace)
    session.begin(trace.kind, trace.config)
    read.clear()
    assert session.do(trace.ops[0], inputs.make(trace.ops[0])).result == "ok"
    assert len(read) == 4  # keys and values, handed in and handed out


def test_functions_of_an_engine_may_tell_how_to_wait_for_it() -> None:
    waited = list[bool]()
    adapter = from_update(
        "late",
        kind="growing",
        make=lambda config: None,
        update=lambda cache, keys, values: (keys, values),
        synchronise=lambda: waited.append(True),
    )
    session = Session(adapter, ("history",))
    session.begin("growing", Config())
    before = len(waited)
    session.note(session.step_type(), "mask", np.ones((1, 1, 1, 1), bool))
    assert len(waited) == before + 1
