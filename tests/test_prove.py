"""`kvconform prove`: graphs that close, claims that follow, and counterexamples of which none is shorter."""

from __future__ import annotations

from typing import Any

import pytest
from local import LocalBench

from kvadapters.reference import Reference
from kvconform import cli, cover, prove
from kvconform.commands.prove import plans
from kvconform.cover import Ops, Plan
from kvconform.prove import Proof
from kvref.ring import Ring


class StaleCursor(Ring):
    """A rewind leaves the index where it was."""

    def rewind(self, to: int) -> None:
        index = self.index
        super().rewind(to)
        self.index = index


class ThirdWrap(Ring):
    """Right until the window has been filled three times: a state that the reference has not."""

    def append(self, keys: Any, values: Any) -> None:
        before = self.offset // self.window
        super().append(keys, values)
        if before < 3 <= self.offset // self.window:
            self.index = self.index % self.window


def proved(ring: type[Ring], windows: int, k: int) -> list[Proof]:
    class Faulty(Reference):
        caches = Reference.caches | {"ring": ring}

    bench = LocalBench(Faulty())
    return [prove.proved(p, k, bench.run, lambda _: None) for p in plans("ring", windows)]


def test_the_sound_reference_holds_and_every_state_is_told_apart() -> None:
    found = proved(Ring, 2, 0)
    assert [(p.states, p.transitions) for p in found] == [(5, 55), (10, 126), (8, 103)]
    assert all(p.holds for p in found)


def test_a_counterexample_is_a_shortest_one() -> None:
    """Found by trying every sequence of moves, in the order of their lengths, without the W-method."""
    last = proved(StaleCursor, 3, 0)[-1]
    assert last.counterexample is not None
    plan, length = last.plan, len(last.counterexample.steps)
    bench = LocalBench(type("Faulty", (Reference,), {"caches": Reference.caches | {"ring": StaleCursor}})())
    level: list[Ops] = [()]
    for n in range(1, length + 1):
        level = [path + move for path in level for move in plan.moves(cover.walk(plan.start, path).session)]
        failing = [p for p in level if bench.run(type(plan.start)(plan.start.profile, plan.start.config, p)).failed]
        assert bool(failing) == (n == length)


def test_tests_hold_every_path_with_every_pair_of_moves_behind_it_where_k_is_1() -> None:
    plan = plans("ring", 1)[0]
    closed = cover.closure(plan)
    whole = {repr(t) for t in prove.tests(plan, closed, 1)}
    for path in closed.states.values():
        moves = plan.moves(cover.walk(plan.start, path).session)
        for one in moves:
            then = plan.moves(cover.walk(plan.start, path + one).session)
            for two in then:
                ends = plan.continuations(cover.walk(plan.start, path + one + two).session)
                assert {repr(path + one + two + end) for end in ends} <= whole


def test_states_that_are_not_told_apart_support_no_claim() -> None:
    plan = plans("ring", 2)[-1]
    blind = Plan(plan.name, plan.start, plan.moves, lambda _: [()], look=())
    found = prove.proved(blind, 0, LocalBench(Reference()).run, lambda _: None)
    assert found.counterexample is None
    assert not found.holds


def test_the_command_prints_what_was_done_and_what_follows(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["prove", "reference", "--window", "2"]) == 0
    shown = capsys.readouterr().out
    assert "23 states and 284 transitions" in shown
    assert "3 of them" in shown


@pytest.mark.parametrize(
    "wrong", [["prove"], ["prove", "reference", "--profile", "sheet"], ["prove", "a", "--", "b"]]
)
def test_what_cannot_be_proved_is_said(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(wrong) == 2
    assert capsys.readouterr().err
