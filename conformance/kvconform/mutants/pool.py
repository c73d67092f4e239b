"""Many mutants at once: processes that hunt one after another, and may die or hang without harm to the others."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from kvconform.mutants.hints import Seen
from kvconform.mutants.hunt import Hints, Hunted, died
from kvconform.mutants.mutant import Mutant

LONGEST = 240.0
"""Seconds after which a process that hunts one mutant is given up."""

MEMORY = 16 << 30
"""Bytes of addresses that such a process may have: a mutant may allocate without end."""

FORK = multiprocessing.get_context("fork")
"""What was read and drawn before is there in every process."""

Hunts = Callable[[Mutant, Hints], Hunted]
"""Hunts one mutant, given what to try first."""


@dataclass
class _Hunter:
    """A process, the mutant it is busy with, and since when."""

    process: Any
    pipe: Connection
    busy: int = -1
    since: float = 0.0

    def go(self, number: int, hints: Hints) -> None:
        """Hunt this one."""
        self.busy, self.since = number, time.monotonic()
        self.pipe.send((number, hints))

    def end(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def all_of(mutants: Sequence[Mutant], hunts: Hunts, processes: int | None = None) -> Iterator[Hunted]:
    """What came of every mutant, in the order in which they are done."""
    todo = list(range(len(mutants)))[::-1]
    hunters = [_begun(mutants, hunts) for _ in range(min(len(todo), processes or os.cpu_count() or 1))]
    seen = Seen()

    def go_on(hunter: _Hunter) -> None:
        number = todo.pop()
        hunter.go(number, seen.hints(mutants[number]))

    for hunter in hunters:
        go_on(hunter)
    try:
        while any(h.busy >= 0 for h in hunters):
            ready = wait([h.pipe for h in hunters if h.busy >= 0], timeout=1.0)
            for i, hunter in enumerate(hunters):
                found = _found(hunter, mutants, hunter.pipe in ready) if hunter.busy >= 0 else None
                if found is None:
                    continue
                yield found
                seen.note(mutants[hunter.busy], found)
                if mutants[hunter.busy].alone or not hunter.process.is_alive():
                    hunter.end()
                    hunters[i] = hunter = _begun(mutants, hunts)
                hunter.busy = -1
                if todo:
                    go_on(hunter)
    finally:
        for hunter in hunters:
            hunter.end()


def _found(hunter: _Hunter, mutants: Sequence[Mutant], ready: bool) -> Hunted | None:
    """What came of a hunter's mutant; None as long as it is under way."""
    mutant = mutants[hunter.busy]
    if ready:
        with suppress(Exception):  # a mutant that wrote anywhere may send anything
            found = hunter.pipe.recv()
            if isinstance(found, Hunted):
                return found
        hunter.process.kill()
        hunter.process.join()
        return died(mutant, f"its process died with status {hunter.process.exitcode}")
    if time.monotonic() - hunter.since > LONGEST:
        hunter.process.kill()
        hunter.process.join()
        return _given_up(mutant)
    return None


def _given_up(mutant: Mutant) -> Hunted:
    """It tells nothing that a busy machine took too long: it counts against the suite, whatever was to be shown."""
    says = f"it took more than {LONGEST:g} seconds"
    return died(mutant, says) if mutant.lives else Hunted(mutant.id, seconds=LONGEST)


def _begun(mutants: Sequence[Mutant], hunts: Hunts) -> _Hunter:
    here, there = FORK.Pipe()
    process = FORK.Process(target=_hunting, args=(there, mutants, hunts), daemon=True)
    process.start()
    there.close()
    return _Hunter(process, here)


def _hunting(pipe: Connection, mutants: Sequence[Mutant], hunts: Hunts) -> None:
    """What a process does: hunt one mutant after another, until nobody asks any more."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            number, hints = pipe.recv()
            mutant = mutants[number]
            if mutant.alone:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # where the memory is found to be broken
            pipe.send(hunts(mutant, hints))
