"""One case measured: the adapter, the limit and the peers take turns, round after round, so that all of them have
the same neighbours on the machine.

A turn is as many operations as last a while. The first turns warm up, compile and find that number; they do not
count. What is reset between turns is not measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kvconform.profiling.operation import Job

WARM = 3
"""Turns that do not count, each longer than the one before until one lasts long enough."""

LONG = 20
"""A first turn that is so many times as long as it must be is as warm as any."""

LEAST = 0.5
"""Seconds that every case may take, however late it is."""


class Pace(NamedTuple):
    """How long is measured: rounds, the seconds a turn lasts at least, those a case may take before its rounds are
    cut short, and those that all cases may take together."""

    rounds: int = 9
    turn: float = 0.02
    case: float = 6.0
    whole: float = 480.0

    def among(self, cases: int, seconds: float) -> Pace:
        """The pace of the next of so many cases when so many seconds are left."""
        return self._replace(case=max(LEAST, min(self.case, seconds / cases)))


class Taken(NamedTuple):
    """Seconds of one operation: the device was busy, the calls took, all was done."""

    device: float | None
    host: float
    total: float


Clock = Callable[[Callable[[], None]], float | None]


@dataclass
class Party:
    """Somebody who takes turns: a job, and how to time it. Without `elapsed` there is no device time; `wait` waits
    until everything is done."""

    name: str
    job: Job
    elapsed: Clock | None = None
    wait: Callable[[], None] = lambda: None
    operations: int = 1
    taken: list[Taken] = field(default_factory=list)
    _next: int = 0

    def begin(self) -> range:
        """The numbers of the operations of the next turn: they go on where the last ended, or begin anew."""
        if self._next + self.operations > self.job.most:
            self.job.reset()
            self._next = 0
        first, self._next = self._next, self._next + self.operations
        return range(first, self._next)

    def turn(self) -> Taken:
        """So many operations, timed."""
        todo, host = self.begin(), 0.0

        def work() -> None:
            nonlocal host
            began = time.perf_counter()
            for i in todo:
                self.job.do(i)
            host = time.perf_counter() - began

        self.wait()
        began = time.perf_counter()
        device = (self.elapsed or _done)(work)
        self.wait()
        total = time.perf_counter() - began
        n = self.operations
        return Taken(None if device is None else device / n, host / n, total / n)

    def warm(self, seconds: float) -> None:
        """Find how many operations a turn must have to last so long. The first of all may have compiled; but where
        it took far longer than a turn must last, compiling was little of it."""
        for i in range(WARM):
            total = max(self.turn().total, 1e-9)
            wanted = max(self.operations, int(seconds / total) + 1)
            if wanted == self.operations and (i or total > LONG * seconds):
                return
            self.operations = min(wanted, self.job.most)


def _done(work: Callable[[], None]) -> None:
    """Do it, by no clock."""
    work()


def rounds(parties: Sequence[Party], pace: Pace) -> None:
    """All parties in turn, beginning with another one each round; at least one round, however long it takes."""
    began = time.perf_counter()
    for party in parties:
        party.warm(pace.turn)
    for i in range(pace.rounds):
        first = i % len(parties)
        for party in (*parties[first:], *parties[:first]):
            party.taken.append(party.turn())
        if time.perf_counter() - began > pace.case:
            return


def metered(adapter: Any, party: Party) -> dict[str, float] | None:
    """What the adapter's meter counts for one operation, of one more turn; None where it has none."""
    meter = getattr(adapter, "meter", None)
    if meter is None:
        return None
    todo, before = party.begin(), dict(meter())
    for i in todo:
        party.job.do(i)
    after = meter()
    return {name: (after[name] - before[name]) / party.operations for name in before}
