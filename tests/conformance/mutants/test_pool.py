"""Whatever a mutant does to the process that hunts it, the others are hunted as well."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import time
from dataclasses import replace
from typing import Any

import pytest

from kvconform.mutants import hunt, pool
from kvconform.mutants.hunt import Hints, Hunted, Kill, hunted
from kvconform.mutants.mutant import Mutant
from kvref.growing import Growing
from kvspec.operations import notation

NAMES = ("a", "exits", "b", "faults", "hangs", "c", "eats", "raises", "d")


def mutant(name: str) -> Mutant:
    """A mutant that is only a name."""
    return Mutant(name, "systematic", "", (), object)


def placed(id_: str) -> Mutant:
    """One that is in a function of a module."""
    function = id_.partition(":")[0]
    return replace(mutant(id_), place=(function, function.partition(".")[0]))


def hunts(m: Mutant, hints: Hints) -> Hunted:
    """What a mutant's name says happens to who hunts it."""
    if m.id == "exits":
        os._exit(3)
    if m.id == "faults":
        ctypes.string_at(0)  # a real fault: one that is sent comes back from pytest's own handler
    if m.id == "hangs":
        time.sleep(60)
    if m.id == "eats":
        return Hunted(m.id, seconds=float(len(bytearray(pool.MEMORY))))
    if m.id == "raises":
        raise ValueError("as said")
    return Hunted(m.id)


ENDS = {"exits": "status 3", "faults": "status -11", "eats": "", "raises": ""}


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little time and memory for a mutant."""
    monkeypatch.setattr(pool, "LONGEST", 8.0)
    monkeypatch.setattr(pool, "MEMORY", 8 << 30)


@pytest.mark.parametrize("processes", [1, 3])
def test_every_mutant_comes_to_an_end_and_says_how(processes: int) -> None:
    found = {h.id: h for h in pool.all_of([mutant(n) for n in NAMES], hunts, processes)}
    assert sorted(found) == sorted(NAMES)
    assert {n for n, h in found.items() if h.killed} == set(ENDS)
    for name, says in ENDS.items():
        shortest = found[name].shortest
        assert shortest is not None and says in shortest.message, name
    assert found["hangs"].seconds == pool.LONGEST


def test_what_takes_too_long_counts_against_the_suite_whatever_was_to_be_shown() -> None:
    control = replace(mutant("hangs"), cls="control", lives=True)
    assert [h.killed for h in pool.all_of([mutant("hangs"), control], hunts, 2)] == [False, True]


def test_what_showed_one_fault_is_tried_first_on_the_next_of_its_function_and_module() -> None:
    items = {name: hunt.Item(notation.trace("growing", "", f"append {n}")) for n, name in enumerate("fgh", 1)}

    def shown(m: Mutant, hints: Hints) -> Hunted:
        given = str([i.trace.ops[0]["n"] for i in hints.get("cover", ())])
        item = items[m.id.split(".")[-1][0]]
        kill = Kill("cover", (), item.trace, given, item)
        return Hunted(m.id, {"examples": None, "cover": kill}, kill)

    ids = ("a.f: 1", "a.f: 2", "a.g: 1", "a.f: 3", "b.h: 1", "a.f: 4")
    bug = replace(mutant("a.f: real"), cls="RING")
    found = list(pool.all_of([*map(placed, ids), bug], shown, 1))
    given = [h.shortest.message for h in found if h.shortest]
    assert given == ["[]", "[1]", "[1]", "[1, 2]", "[]", "[1, 2]", "[]"]


def test_one_after_another_is_hunted_by_the_same_process_until_it_dies() -> None:
    def who(m: Mutant, hints: Hints) -> Hunted:
        return hunts(m, hints) if m.id == "exits" else Hunted(m.id, seconds=float(os.getpid()))

    found = {h.id: h.seconds for h in pool.all_of([mutant(n) for n in ("a", "b", "exits", "c", "d")], who, 1)}
    assert found["a"] == found["b"] != found["c"] == found["d"] and os.getpid() not in found.values()


def test_several_are_hunted_at_once() -> None:
    def slowly(m: Mutant, hints: Hints) -> Hunted:
        time.sleep(0.5)
        return Hunted(m.id, seconds=float(os.getpid()))

    assert len({h.seconds for h in pool.all_of([mutant(n) for n in "abc"], slowly, 3)}) == 3


def test_none_left_over_when_the_caller_stops() -> None:
    began: Any = pool.all_of([mutant(n) for n in "abcd"], hunts, 2)
    next(began)
    began.close()
    assert [p for p in multiprocessing.active_children() if p.is_alive()] == []


class Endless(Growing):
    """Takes memory for as long as there is some."""

    def append(self, keys: Any, values: Any) -> None:
        taken = []
        while True:
            taken.append(bytearray(1 << 28))


class Endlessly:
    """An adapter of such a cache."""

    def __new__(cls) -> Any:
        from kvconform.mutants.planting import having

        return having(growing=Endless)()


def test_a_cache_that_takes_all_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "LONGEST", 120.0)
    eats = Mutant("eats", "systematic", "", (), Endlessly, chapters=("growing",), first_is_enough=True)
    (found,) = pool.all_of([eats], hunted, 1)
    assert found.killed
