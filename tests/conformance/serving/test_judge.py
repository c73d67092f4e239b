"""What an engine says that it reused, beside what it may: who is accused, and by which clause."""

from __future__ import annotations

import pytest

from adapters.probe import engines
from kvadapters.probe import Precision
from kvadapters.serving.driver import Answer, Declared, Request
from kvconform.serving.blame import blamed
from kvconform.serving.judge import Judge, Wrong
from kvconform.serving.player import Asked
from kvconform.serving.recipes import aim
from kvspec.serving.history import history


def reused(words: str) -> list[Asked]:
    """Requests of 20 tokens that all differ, each alone, of which the last one is said to have reused 16."""
    asked = []
    for number, step in enumerate(history(words)):
        prompt = tuple(range(20 * number, 20 * number + 20))
        asked.append(Asked(number, step, Request(prompt, step.new, step.samples, step.salt), True))
    asked[-1].answer = Answer((), 16)
    return asked


def judged(asked: list[Asked]) -> list[Wrong]:
    judge = Judge(engines.small("qwen3", "full,window 6"), Precision())
    return [wrong for wrong in judge.judged(asked) if wrong.sort == "reused"]


@pytest.mark.parametrize(
    ("words", "clause"),
    [("ask a 20; ask b 20", "SERVE-3"), ("ask a 20 salt=x; ask b 20 salt=y", "SERVE-8"), ("ask a 20", "SERVE-3")],
)
def test_rows_that_nobody_computed_are_blamed_on_the_salt_only_if_there_are_two(words: str, clause: str) -> None:
    asked = reused(words)
    wrong = judged(asked)
    assert [w.request for w in wrong] == [len(asked) - 1]
    assert blamed(asked, wrong, {"ask"}, aim(Declared("engine"), (), 100), {}) == clause


def test_samples_of_one_prompt_may_reuse_the_rows_of_each_other() -> None:
    assert judged(reused("ask a 20 samples=2")) == []
    assert judged(reused("ask a 20 samples=2; ask b 20")) != []
