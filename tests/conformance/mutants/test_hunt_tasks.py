"""Whatever a mutant does to the process that hunts it, the others are hunted as well."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from typing import Any

import psutil
import pytest

from kvconform.bugs.mutant import Mutant
from kvconform.bugs.trace_sources import Hints, Item
from kvconform.runner.pool import opened
from kvref.caches.growing import Growing
from kvspec import notation
from kvspec.errors import CannotRun
from kvworkshop import hunt, hunt_tasks
from kvworkshop.hunt import HuntResult, Kill
from support.running.deaths import die
from support.slow import one_in

NAMES = ("a", "exits", "b", "faults", "hangs", "c", "eats", "raises", "d")
ROOM = 1 << 30
"""Bytes that a process may take beyond what the tests' own has."""


def mutant(name: str) -> Mutant:
    """A mutant that is only a name."""
    return Mutant(name, "systematic", "", (), object)


def placed(id_: str) -> Mutant:
    """One that is in a function of a module."""
    function = id_.partition(":")[0]
    return replace(mutant(id_), place=(function, function.partition(".")[0]))


def ends(m: Mutant, hints: Hints, first: bool) -> HuntResult:
    """The hunt ends as the mutant's name says."""
    return HuntResult(m.id, seconds=float(die(m.id.partition(" ")[0], 2 * ROOM)))


ENDS = {"exits": "status 3", "faults": "status -11", "eats": "MemoryError", "raises": "ValueError: as said"}


def found(monkeypatch: pytest.MonkeyPatch, does: Any, *mutants: Mutant, processes: int = 1) -> list[HuntResult]:
    """What comes of mutants where this is what hunts them."""
    monkeypatch.setattr(hunt_tasks, "hunt", does)
    limit = psutil.Process().memory_info().vms + ROOM
    with opened(processes, seconds=hunt_tasks.LONGEST_TASK, memory_limit=limit) as pool:
        return list(hunt_tasks.all_of(mutants, pool))


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little time for a mutant."""
    monkeypatch.setattr(hunt_tasks, "LONGEST", 2.0)
    monkeypatch.setattr(hunt_tasks, "LONGEST_TASK", 3.0)


@pytest.mark.parametrize(("processes", "alone"), one_in(3, itertools.product((1, 3), (False, True))))
def test_every_mutant_comes_to_an_end_and_says_how(
    processes: int, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutants = [replace(mutant(n), own_process=alone or n == "raises") for n in NAMES]
    by_id = {h.id: h for h in found(monkeypatch, ends, *mutants, processes=processes)}
    assert sorted(by_id) == sorted(NAMES)
    assert {n for n, h in by_id.items() if h.killed} == set(ENDS)
    for name, says in ENDS.items():
        shortest = by_id[name].shortest
        assert shortest is not None and says in shortest.message, name
    assert by_id["hangs"].seconds == hunt_tasks.LONGEST


def test_what_takes_too_long_counts_against_the_suite_whatever_was_to_be_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control = replace(mutant("hangs"), id="hangs too", bug_class="control", is_control=True)
    ended = found(monkeypatch, ends, mutant("hangs"), control, processes=2)
    assert {h.id: h.killed for h in ended} == {"hangs": False, "hangs too": True}


def test_what_showed_one_fault_is_tried_first_on_the_next_of_its_function_and_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items = {name: Item(notation.trace("growing", "", f"append {n}")) for n, name in enumerate("fgh", 1)}

    def shown(m: Mutant, hints: Hints, first: bool) -> HuntResult:
        given = str([i.trace.ops[0]["n"] for i in hints.get("cover", ())])
        item = items[m.id.split(".")[-1][0]]
        kill = Kill("cover", (), item.trace, given, item)
        return HuntResult(m.id, {"examples": None, "cover": kill}, kill)

    ids = ("a.f: 1", "a.f: 2", "a.g: 1", "a.f: 3", "b.h: 1", "a.f: 4")
    bug = replace(mutant("a.f: real"), bug_class="RING")
    given = [h.shortest.message for h in found(monkeypatch, shown, *map(placed, ids), bug) if h.shortest]
    assert given == ["[]", "[1]", "[1]", "[1, 2]", "[]", "[1, 2]", "[]"]


def who(m: Mutant, hints: Hints, first: bool) -> HuntResult:
    """Says in which process it was hunted."""
    return ends(m, hints, first) if m.id == "exits" else HuntResult(m.id, seconds=float(os.getpid()))


def test_one_after_another_is_hunted_by_the_same_process_until_it_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = found(monkeypatch, who, *map(mutant, ("a", "b", "exits", "c", "d")))
    pids = {h.id: h.seconds for h in ended}
    assert pids["a"] == pids["b"] != pids["c"] == pids["d"] and os.getpid() not in pids.values()


def test_what_may_have_written_anywhere_has_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    mutants = [replace(mutant(n), own_process=n in "bc") for n in "abcd"]
    pids = {h.id: h.seconds for h in found(monkeypatch, who, *mutants)}
    assert pids["a"] == pids["d"] and len(set(pids.values())) == 3


@pytest.mark.parametrize("error", [CannotRun("no compiler"), TypeError("hunt() takes no such argument")])
def test_what_is_not_of_the_mutant_is_no_mutant_that_was_found(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(m: Mutant, hints: Hints, first: bool) -> HuntResult:
        raise error

    with pytest.raises(type(error), match=r"no (such )?(compiler|argument)"):
        found(monkeypatch, fails, mutant("a"))


def test_a_process_that_was_not_forked_finds_mutants_by_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunt_tasks, "KNOWN", {})
    assert hunt_tasks.hunt_by_id("control/Losing", {}).killed


class Endless(Growing):
    """Takes memory for as long as there is some."""

    def append(self, keys: Any, values: Any) -> None:
        taken = []
        while True:
            taken.append(bytearray(1 << 28))


class Endlessly:
    """An adapter of such a cache."""

    def __new__(cls) -> Any:
        from kvconform.bugs.planting import having

        return having(growing=Endless)()


@pytest.mark.slow
def test_a_cache_that_takes_all_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunt_tasks, "LONGEST_TASK", 120.0)
    eats = Mutant("eats", "systematic", "", (), Endlessly, chapters=("growing",), stop_at_first_kill=True)
    (ended,) = found(monkeypatch, hunt.hunt, eats)
    assert ended.killed
