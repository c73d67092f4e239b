"""Failing histories are made short, also where an engine cannot begin anew. Long ones are blamed with care."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.probe import engines
from kvadapters.probe import Precision
from kvconform.serving.blame import LONG, blamed
from kvconform.serving.judge import Wrong
from kvconform.serving.player import Asked, Player
from kvconform.serving.run import RARE, Run, Shortest
from kvconform.serving.shrink import shrunk
from kvspec.serving.history import History, history, told
from support.engines import serving

FOUND = Shortest((), [], [], Counter())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    probe, folder = engines.small("qwen3", "full,window 6"), tmp_path_factory.mktemp("probe")
    probe.write(folder)
    return Run(probe, serving.driver(Path(folder)), Precision())


def test_requests_one_after_another_are_tried_first() -> None:
    begun = history("submit a 9; step 2; submit b a[:4] 3; cancel a; ask c b 2; wait")
    tried = list[History]()

    def fails(shorter: History) -> bool:
        tried.append(shorter)
        return sum(step.begins for step in shorter) > 1

    short = shrunk(begun, fails, 100, 10.0)
    assert told(tried[0]) == "ask a 9; ask b a[:4] 3; ask c b 2"
    assert {step.do for step in short} == {"ask"}


@pytest.mark.parametrize(
    ("words", "resets", "seen", "fails"),
    [
        ("ask a 3", False, [FOUND, None], False),  # rows of an earlier history were found by luck
        ("ask a 3", False, [FOUND, FOUND], True),
        ("ask a 3", True, [FOUND], True),
        ("submit a 3; wait", False, [None, FOUND], True),  # what is under way together is not the same each time
        ("submit a 3; wait", True, [None, None], False),
    ],
)
def test_an_engine_that_cannot_begin_anew_fails_twice(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: str, resets: bool, seen: list[Shortest | None], fails: bool
) -> None:
    declared = run.driver.declared
    can = declared.can if resets else declared.can - {"reset"}
    monkeypatch.setattr(run.driver, "declared", replace(declared, can=can))
    left, before = iter(seen), run.shortest
    monkeypatch.setattr(run, "_wrong_in", lambda history: next(left))
    assert run._fails(history(words)) == fails
    assert run.shortest is (FOUND if fails else before)
    assert next(left, "all were asked") == "all were asked"
    run.shortest = before


def played(run: Run, words: str) -> list[Asked]:
    return Player(run.driver, run.probe.layout.ids).play(history(words))


def test_a_cancel_that_has_nothing_to_do_with_a_long_failure_is_not_blamed(run: Run) -> None:
    others = "; ".join(f"ask x{i} 2" for i in range(LONG))
    asked = played(run, f"submit y 9; cancel y; {others}; ask a 8; ask b a[:4] 3")
    wrong = [Wrong(len(asked) - 1, "extra", "query 4, layer 1 (window 6): sees a row", 1, 4)]
    assert blamed(asked, wrong, {"ask", "submit", "cancel"}, run.aim, {}) == "SERVE-6"
    short = played(run, "submit y 9; cancel y; ask a 8; ask b a[:4] 3")
    wrong = [Wrong(2, "extra", wrong[0].words, 1, 4)]
    assert blamed(short, wrong, {"ask", "submit", "cancel"}, run.aim, {}) == "SERVE-13"


def test_a_rare_failure_is_no_matter_of_the_dtype(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "wrong_histories", 1)
    monkeypatch.setattr(run, "past", [history("ask a 1")] * RARE)
    assert run._coarser([]) != []
    monkeypatch.setattr(run, "past", [history("ask a 1")] * (RARE + 1))
    assert run._coarser([]) == []


@pytest.mark.parametrize(("shared", "clause"), [(4, "SERVE-2"), (3, "SERVE-4"), (5, "SERVE-4"), (6, "SERVE-2")])
def test_the_end_of_a_prefix_is_blamed_where_it_stands_beside_a_block(run: Run, shared: int, clause: str) -> None:
    asked = played(run, f"ask a 12; ask b a[:{shared}] 3")
    assert blamed(asked, [Wrong(1, "extra", "layer 0 (full)", 0, 6)], {"ask"}, run.aim, {}) == clause


@pytest.mark.parametrize(("words", "clause"), [("up2 4 a[:1] new=2", "SERVE-16"), ("7 new=2", "SERVE-7")])
def test_a_refused_draft_in_a_reused_answer_is_blamed(run: Run, words: str, clause: str) -> None:
    asked = played(run, f"ask a {words}; ask b a 1")
    last = len(asked[1].request.tokens) - 1
    assert blamed(asked, [Wrong(1, "extra", "layer 0 (full)", 0, last)], {"ask"}, run.aim, {}) == clause


def test_company_that_a_failure_needs_is_blamed_before_drafts(run: Run) -> None:
    asked = played(run, "submit a 5; submit b up4 3 b[1:3] new=6; wait")
    wrong = [Wrong(1, "extra", "layer 0 (full)", 0, 12)]
    assert blamed(asked, wrong, {"submit", "wait"}, run.aim, {}) == "SERVE-12"
    assert (
        blamed([replace(asked[1], number=0)], [replace(wrong[0], request=0)], {"submit"}, run.aim, {}) == "SERVE-12"
    )


def test_what_nothing_related_explains_is_a_matter_of_what_came_before(run: Run) -> None:
    asked = played(run, "; ".join(f"ask x{i} 2" for i in range(LONG + 1)))
    assert blamed(asked, [Wrong(LONG, "failed", "no answer")], {"ask"}, run.aim, {}) == "SERVE-17"


@pytest.mark.parametrize("words", ["ask a 8; ask b a[:8]", "ask a 7 new=2; ask b a"])
def test_a_prompt_that_was_there_as_a_whole_is_blamed_on_what_is_computed_of_it(run: Run, words: str) -> None:
    asked = played(run, words)
    assert blamed(asked, [Wrong(1, "failed", "no answer")], {"ask"}, run.aim, {}) == "SERVE-5"


@pytest.mark.parametrize(("preemptions", "clause"), [(1, "SERVE-10"), (0, "SERVE-14")])
def test_samples_are_blamed_where_none_was_preempted(run: Run, preemptions: int, clause: str) -> None:
    asked = played(run, "submit y 14 new=8 samples=2; ask z 11 new=6")
    wrong, counted = [Wrong(0, "extra", "layer 0 (full)", 0, 15)], {"preemptions": preemptions}
    assert blamed(asked, wrong, {"submit", "ask"}, run.aim, counted) == clause
