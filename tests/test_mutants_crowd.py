"""Whatever a mutant does to the process that hunts it, the others are hunted as well."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import time
from typing import Any

import pytest

from kvconform.mutants import crowd
from kvconform.mutants.hunt import Hunted, hunted
from kvconform.mutants.mutant import Mutant
from kvref.growing import Growing

NAMES = ("a", "exits", "b", "faults", "hangs", "c", "eats", "raises", "d")


def mutant(name: str) -> Mutant:
    """A mutant that is only a name."""
    return Mutant(name, "systematic", "", (), object)


def hunts(m: Mutant) -> Hunted:
    """What a mutant's name says happens to who hunts it."""
    if m.id == "exits":
        os._exit(3)
    if m.id == "faults":
        ctypes.string_at(0)  # a real fault: one that is sent comes back from pytest's own handler
    if m.id == "hangs":
        time.sleep(60)
    if m.id == "eats":
        return Hunted(m.id, seconds=float(len(bytearray(crowd.MEMORY))))
    if m.id == "raises":
        raise ValueError("as said")
    return Hunted(m.id)


ENDS = {"exits": "status 3", "faults": "status -11", "hangs": "more than 8 seconds", "eats": "", "raises": ""}


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little time and memory for a mutant."""
    monkeypatch.setattr(crowd, "LONGEST", 8.0)
    monkeypatch.setattr(crowd, "MEMORY", 8 << 30)


@pytest.mark.parametrize("processes", [1, 3])
def test_every_mutant_comes_to_an_end_and_says_how(processes: int) -> None:
    found = {h.id: h for h in crowd.all_of([mutant(n) for n in NAMES], hunts, processes)}
    assert sorted(found) == sorted(NAMES)
    assert {n for n, h in found.items() if h.killed} == set(ENDS)
    for name, says in ENDS.items():
        shortest = found[name].shortest
        assert shortest is not None and says in shortest.message, name


def test_one_after_another_is_hunted_by_the_same_process_until_it_dies() -> None:
    def who(m: Mutant) -> Hunted:
        return hunts(m) if m.id == "exits" else Hunted(m.id, seconds=float(os.getpid()))

    found = {h.id: h.seconds for h in crowd.all_of([mutant(n) for n in ("a", "b", "exits", "c", "d")], who, 1)}
    assert found["a"] == found["b"] != found["c"] == found["d"] and os.getpid() not in found.values()


def test_several_are_hunted_at_once() -> None:
    def slowly(m: Mutant) -> Hunted:
        time.sleep(0.5)
        return Hunted(m.id, seconds=float(os.getpid()))

    assert len({h.seconds for h in crowd.all_of([mutant(n) for n in "abc"], slowly, 3)}) == 3


def test_none_left_over_when_the_caller_stops() -> None:
    began: Any = crowd.all_of([mutant(n) for n in "abcd"], hunts, 2)
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


def test_a_cache_that_takes_all_memory_is_found() -> None:
    eats = Mutant("eats", "systematic", "", (), Endlessly, profiles=("growing",), first_is_enough=True)
    (found,) = crowd.all_of([eats], hunted, 1)
    assert found.killed
