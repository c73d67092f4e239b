"""Drawings show each step as it was, and mark what was compared and differs, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.judge import steps, trial
from kvconform.judge.trial_result import TrialResult
from kvreports.drawing.text import draw
from kvspec.contract import CHAPTERS, Lengths
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.notation import from_sentence
from kvspec.reading.clauses import examples_of
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.fakes.lies import Growing, Honest
from support.running.command_line import kvconform
from support.running.local_adapter import LocalAdapter

OF_A_CHAPTER = 2
"""Worked examples that are drawn of each chapter."""

LEVELS = "storage", "visible"


def judged(adapter: Any, trace: Trace, level: str) -> TrialResult:
    about = LocalAdapter(adapter).adapter
    session = Session(adapter, trial.observables(trace, about, level))
    return trial.run(trace, session, about, level)


def examples(chapter: str) -> list[Trace]:
    """Some worked examples, those of the chapter's first clauses."""
    return [e.trace for e in examples_of(chapter)][:OF_A_CHAPTER]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_step_is_drawn_as_it_was_when_it_was_done(chapter: str, level: str) -> None:
    for trace in examples(chapter):
        whole = steps.steps(judged(Reference(), trace, level))
        for n in range(1, len(whole)):
            cut = judged(Reference(), trace.cut(n), level)
            assert steps.steps(cut)[-1].expected == whole[n - 1].expected, (trace, n)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_drawing_of_what_agrees_marks_nothing(chapter: str, level: str) -> None:
    for trace in examples(chapter):
        drawn = steps.failing_steps(judged(Reference(), trace, level))
        assert not any(step.differs for step in drawn)
        assert not {"differs", "[found", "!"} & set(draw(drawn).split())


class Off(Growing):
    """Counts a row too many, and tells of a buffer that it may have as it likes."""

    def lengths(self) -> Lengths:
        offset = super().lengths().offset
        return Lengths(offset + (offset > 2), buffered=offset, capacity=1000)


class OffByOne(Honest):
    cache = Off


def test_what_is_not_compared_is_drawn_and_not_marked() -> None:
    trace = from_sentence("growing: append 2; rewind 5; append 1")
    drawn = steps.failing_steps(judged(OffByOne(), trace, "visible"))
    assert [step.differs for step in drawn] == [[], [], ["offset"]]
    text = draw(drawn)
    assert "offset 3 [found 4]   buffered 3   capacity 1000" in text and text.count("[found") == 1
    assert "(nothing)" not in text


def test_a_refusal_that_names_no_clause_is_not_marked() -> None:
    drawn = steps.steps(judged(Honest(), from_sentence("growing: append 2; rewind 5"), "visible"))
    assert "[found" not in draw(drawn)


@pytest.mark.parametrize("command", [("--draw",), ()])
def test_the_replay_of_a_trace_that_agrees_says_nothing_of_differences(command: tuple[str, ...]) -> None:
    words = "growing: append 2; view; snapshot s; rewind 1; append 2"
    done = kvconform("replay", words, "--visible", *command)
    assert done.returncode == 0 and "append 2" in done.stdout
    assert not {"differs", "expected", "(nothing)"} & set(done.stdout.split())


class OpensNothing(Honest):
    """Refuses every cache."""

    def open(self, kind: str, config: Config) -> Growing:
        raise Refused("", "not today")


def test_a_trace_of_no_operations_has_no_steps_to_draw() -> None:
    seen = judged(OpensNothing(), from_sentence("growing: append 2").cut(0), "visible")
    assert seen.failed and steps.failing_steps(seen) == []
