"""`kvconform prove`: graphs that close, claims that follow, and counterexamples of which none is shorter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform import cli
from kvconform.generate import covers
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.generate.strategies import snapshot
from kvconform.generate.strategies.plan_moves import Ops, Plan
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.reference import claims
from kvref.abilities.snapshot import Snapshot
from kvref.caches.growing import Growing
from kvref.caches.ring import Ring
from kvspec.contract import Claim
from kvspec.trace import Trace
from kvworkshop.commands import prove as prove_command
from kvworkshop.prove import identifiers
from kvworkshop.prove import proof as prove
from kvworkshop.prove.configurations import plans
from kvworkshop.prove.proof import Proof
from support.running.command_line import kvconform
from support.running.local_adapter import LocalAdapter
from support.slow import one_in


class StaleCursor(Ring):
    """A rewind leaves the index where it was."""

    def rewind(self, to: int) -> None:
        index = self.index
        super().rewind(to)
        self.index = index


class WideWindow(Ring):
    """A prefill keeps one old row more than the window has."""

    def _prefill(self, new: Any) -> None:
        self.window += 1
        super()._prefill(new)
        self.window -= 1


class LosesItsIndex(Ring):
    """A restored ring goes on at its first slot."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        super().restore(saved, to)
        if saved is not None:
            self.index = min(1, self.index)


class Aliased(Growing):
    """A snapshot is a view of the cache's own rows."""

    def snapshot(self, start: int) -> Snapshot | None:
        saved = super().snapshot(start)
        if saved is None:
            return None
        return Snapshot(self.kind, self.config, self.rows.part(saved.start, saved.stop), saved.start, saved.stop)


class ThirdWrap(Ring):
    """Wrong where the window has been filled three times: a state that the reference has not."""

    def append(self, keys: Any, values: Any) -> None:
        before = self.offset // self.window
        super().append(keys, values)
        if before < 3 <= self.offset // self.window:
            self.index = self.index % self.window + 1 if self.index < self.window else self.index - 1


def under_test(**caches: Any) -> LocalAdapter:
    class Faulty(Reference):
        pass

    Faulty.caches = {**Reference.caches, **caches}
    return LocalAdapter(Faulty())


def silent(message: str) -> None:
    pass


def plan(chapter: str, name: str) -> Plan:
    return next(p for p in plans(chapter, 4) if p.name == name)


KINDS = ("append", "rewind", "snapshot", "restore")


def of_one_operation(plan: Plan) -> Plan:
    """Without the moves that are several operations, and without what a snapshot is cut and joined by."""
    return replace(
        plan, moves=lambda session: [m for m in plan.moves(session) if len(m) == 1 and m[0]["op"] in KINDS]
    )


def proved(ring: type[Ring], windows: int, k: int) -> list[Proof]:
    return [prove.proved(p, k, under_test(ring=ring).run, silent) for p in plans("ring", windows)]


def test_the_sound_reference_holds_and_every_state_is_told_apart() -> None:
    found = proved(Ring, 2, 0)
    assert [(p.states, p.transitions) for p in found] == [(5, 55), (10, 126), (8, 103)]
    assert all(p.holds for p in found)


BUGS: dict[str, tuple[dict[str, Any], str, str, int]] = {
    "a stale cursor": ({"ring": StaleCursor}, "ring", "ring window=3 step=256", 3),
    "a wrong window": ({"ring": WideWindow}, "ring", "ring window=2 step=256", 2),
    "an index lost on restore": ({"ring": LosesItsIndex}, "snapshot", "snapshot ring window=2 step=1", 4),
}
"""A bug, whose cache has it, and the operations of the shortest trace that shows it."""


@pytest.mark.parametrize("bug", one_in(3, BUGS))
def test_a_counterexample_is_a_shortest_one(bug: str) -> None:
    """Found by trying every trace of the alphabet, one operation at a time, without the W-method."""
    caches, chapter, name, operations = BUGS[bug]
    found = prove.proved(of_one_operation(plan(chapter, name)), 0, under_test(**caches).run, silent)
    assert found.counterexample is not None
    assert (len(found.counterexample.steps), found.shortest) == (operations, True)
    runs = under_test(**caches).run
    start = found.plan.start
    for shorter in _beginnings(found.plan, operations - 1):
        assert not runs(Trace(start.kind, start.config, shorter)).failed


def test_an_aliased_snapshot_is_shown_by_what_overwrites_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """No trace of up to three operations shows it, whatever more is tried without the W-method."""
    monkeypatch.setattr(snapshot, "BOUND", 1)
    monkeypatch.setattr(prove, "BRUTE", 2000)
    (one,) = (p for p in snapshot.plans() if p.start.kind == "growing")
    found = prove.proved(of_one_operation(one), 0, under_test(growing=Aliased).run, silent)
    assert found.counterexample is not None
    names = [op["op"] for op in found.counterexample.trace.ops[: len(found.counterexample.steps)]]
    assert names == ["append", "snapshot", "rewind", "append", "restore"]
    assert found.agreed >= 3


def _beginnings(plan: Plan, operations: int) -> list[Ops]:
    """All traces of so many operations that begin a sequence of moves."""
    found, todo = dict[str, Ops](), [Ops()]
    while todo:
        path = todo.pop()
        if len(path) >= operations:
            found[repr(path[:operations])] = path[:operations]
        else:
            todo += [path + m for m in plan.moves(covers.walk(plan.start, path).session)]
    return list(found.values())


def test_a_search_that_is_too_large_is_not_called_the_shortest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "BRUTE", 3)
    found = prove.proved(plan("ring", "ring window=3 step=256"), 0, under_test(ring=StaleCursor).run, silent)
    assert found.counterexample is not None
    assert (found.agreed, found.shortest) == (0, False)


def small() -> tuple[Plan, covers.Closure, identifiers.Identifiers]:
    one = plan("ring", "ring window=1 step=256")
    closed = covers.closure(one)
    return one, closed, identifiers.identifiers(one, closed)


def test_tests_hold_every_path_with_up_to_k_more_moves_and_what_tells_states_apart() -> None:
    """Each is a test, or begins one."""
    one, closed, found = small()
    whole = prove.tests(one, closed, found, 1)
    beginnings = {repr(t[:n]) for t in whole for n in range(len(t) + 1)}
    for path in closed.states.values():
        for ops in _up_to(one, path, 2):
            w = covers.walk(one.start, ops)
            for end in identifiers.at(w.session, found.sequences[covers.key_of(one, w)]):
                assert repr(ops + end) in beginnings
    assert len({repr(t) for t in whole}) == len(whole)


def _up_to(plan: Plan, path: Ops, moves: int) -> list[Ops]:
    more = plan.moves(covers.walk(plan.start, path).session) if moves else []
    return [path, *(ops for m in more for ops in _up_to(plan, path + m, moves - 1))]


def test_what_tells_states_apart_is_shorter_than_what_a_plan_continues_with_and_does_tell_them_apart() -> None:
    one = plan("ring", "ring window=2 step=1")
    closed = covers.closure(one)
    found = identifiers.identifiers(one, closed)
    assert not found.alike
    assert {len(s) for ends in found.sequences.values() for s in ends} == {2}
    answered = [
        repr(sorted(identifiers.answers(one, path, found.sequences[k]).items()))
        for k, path in closed.states.items()
    ]
    assert len(set(answered)) == len(closed.states)


def test_states_that_one_sequence_does_not_tell_apart_have_some_of_their_own() -> None:
    """Without a look and with no continuation, the moves of a state are what is left to ask."""
    one = replace(plan("ring", "ring window=2 step=256"), continuations=lambda _: [()], look=())
    closed = covers.closure(one)
    found = identifiers.identifiers(one, closed)
    assert not found.alike
    assert len({len(ends) for ends in found.sequences.values()}) > 1


def test_states_that_are_not_told_apart_support_no_claim() -> None:
    """A ring that is only looked at: what is spare and what is next does not show."""
    one = plan("ring", "ring window=2 step=256")
    closed = covers.closure(one)
    blind = replace(one, continuations=lambda _: [()], look=())
    found = identifiers.identifiers(replace(blind, moves=lambda _: []), closed)
    assert len(found.alike) > 0
    proof = Proof(blind, 0, told_apart=not found.alike)
    assert not proof.holds


def test_one_state_more_than_the_reference_hides_from_k_0_and_not_from_enough() -> None:
    """What the claim excludes is excluded with reason."""
    name = "ring window=1 step=256"
    few, more = (prove.proved(plan("ring", name), k, under_test(ring=Late).run, silent) for k in (0, 1))
    assert few.counterexample is None and few.holds
    assert more.counterexample is not None


class Late(Ring):
    """Right until it was asked about a rewind twice, with nothing done between: then the next row is lost."""

    asked = 0

    def can_rewind(self, to: int) -> bool:
        self.asked += 1
        return super().can_rewind(to)

    def rewind(self, to: int) -> None:
        self.asked = 0
        super().rewind(to)

    def append(self, keys: Any, values: Any) -> None:
        lost, self.asked = self.asked >= 2, 0
        super().append(keys, values)
        if lost:
            self.rows.keys[...] = 0


def test_the_command_prints_what_was_done_and_what_follows(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["prove", "reference", "--window", "2"]) == 0
    shown = capsys.readouterr().out
    assert "3 configurations are closed: 23 states, 284 transitions" in shown
    assert "So in 3 of them it agrees with the list model on every sequence" in shown
    assert "Assumptions:" in shown


def test_the_document_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["prove", "reference", "--window", "1", "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [(p["configuration"], p["states"], p["transitions"], p["k"]) for p in made["proofs"]] == [
        ("ring window=1 step=256", 5, 55, 0)
    ]
    assert (made["oracle"], made["level"], made["counterexample"]) == ("list model", "visible", None)
    assert "5 states, 55 transitions" in made["claim"] and len(made["assumptions"]) == 3


def test_an_adapter_is_told_what_buffers_in_turns_do_to_the_claim(capsys: pytest.CaptureFixture[str]) -> None:
    adapter = "kvadapters.reference:Reference"
    assert cli.main(["prove", adapter, "--window", "1", "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["adapter"], made["oracle"], made["level"]) == ("reference", "reference", "storage")
    assert made["proofs"][0]["k"] == 1 and "ping-pong" in made["notes"][0]


def test_an_adapter_of_level_visible_is_tested_and_nothing_is_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["prove", "kvworkshop.correct_variants:Whole", "--window", "1", "--k", "0"]) == 0
    assert "Nothing follows for longer traces" in capsys.readouterr().out


@pytest.mark.parametrize("level", ["visible", "storage"])
def test_what_an_adapter_does_not_claim_is_left_out_and_said(level: str) -> None:
    """An adapter without `view` was found to break RING-5 by the first trace that views."""
    adapter = f"support.fakes.parts_of_reference:ring-view_{level}"
    done = kvconform("prove", adapter, "--window", "1", "--k", "0", "--format", "json")
    made = json.loads(done.stdout)
    assert done.returncode == 0
    assert [p["result"] for p in made["proofs"]] == [
        "agrees" if level == "visible" else "agrees; not all is claimed"
    ]
    assert "does not claim were left out" in made["claim"] and "Nothing follows" in made["claim"]


def test_a_bug_in_what_is_claimed_is_found_without_what_is_not() -> None:
    local = under_test(ring=StaleCursor)
    about = replace(claims(), chapters={"ring": Claim("storage", without=("view",))})

    def runs(trace: Trace) -> TrialResult | None:
        return next((local.run(fit) for fit in fitted([trace], about)), None)

    found = prove.proved(plan("ring", "ring window=2 step=256"), 0, runs, silent)
    assert found.counterexample is not None and not found.whole
    assert "view" not in {op["op"] for op in found.counterexample.trace.ops}


def test_a_counterexample_is_printed_and_is_the_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["prove", "kvworkshop.fakes:DoesNothing", "--window", "1"]) == 1
    shown = capsys.readouterr().out
    assert "A shortest counterexample, 1 operations, of ring window=1 step=256" in shown
    assert "offset: expected 1, found 0" in shown


@pytest.mark.parametrize(("proved", "told"), [(0, ""), (1, "The state graphs of 1 configuration are closed")])
def test_what_was_proved_before_an_interruption_is_printed(
    proved: int, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_order = prove_command.in_order

    def interrupted(*all_of: Any) -> Iterator[Proof]:
        yield from islice(in_order(*all_of), proved)
        raise KeyboardInterrupt

    monkeypatch.setattr(prove_command, "in_order", interrupted)
    assert cli.main(["prove", "reference", "--window", "2", "--k", "0"]) == 130
    out, err = capsys.readouterr()
    assert f"interrupted; {proved} of 3 configurations were proved" in err and (told in out if told else not out)


@pytest.mark.parametrize("chapter", ["draft", "snapshot", "batch"])
def test_rounds_a_snapshot_and_a_batch_of_two_have_states_at_windows_up_to_2(chapter: str) -> None:
    found = plans(chapter, 2)
    kinds = {p.start.kind for p in found}
    assert kinds >= {"draft": {"ring"}, "snapshot": {"ring", "growing"}, "batch": {"store"}}[chapter]
    if chapter != "batch":
        assert {p.start.config.window for p in found} >= {1, 2}


@pytest.mark.parametrize(
    "wrong", [["prove"], ["prove", "reference", "--chapter", "sheet"], ["prove", "a", "--", "b"]]
)
def test_what_cannot_be_proved_is_said(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(wrong) == 2
    assert capsys.readouterr().err
