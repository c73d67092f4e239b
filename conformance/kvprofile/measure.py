"""Measures one case: the adapter, the limit and the peers alternate in every round, so that all suffer equally from
other work on the machine.

A turn is enough operations to measure their time. The first turns warm up, compile and find that number; they do
not count. Resets between turns are not measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from kvprofile.operation import Job

WARM = 10
"""Warm-up turns at most, each longer than the one before until one lasts long enough."""

IN_A_ROW = 2
"""Warm-up turns, one after the other, that must last long enough."""

LEAST = 0.5
"""Seconds that every case gets, however late it is."""


class Pace(NamedTuple):
    """How long to measure: the rounds, and the least seconds of a turn. A case gets no more rounds after some
    seconds, and there is a limit of seconds for all cases together."""

    rounds: int = 9
    turn: float = 0.02
    case: float = 6.0
    whole: float = 480.0

    def among(self, cases: int, seconds: float) -> Pace:
        """Give the pace of the next case, for these many cases and seconds left."""
        return self._replace(case=max(LEAST, min(self.case, seconds / cases)))


class Taken(NamedTuple):
    """Seconds of one operation: device busy, host calls, and until all was done."""

    device: float | None
    host: float
    total: float


Clock = Callable[[Callable[[], None]], float]


@dataclass
class Party:
    """A participant: a job, and how to time it. Without `elapsed` there is no device time; `wait` waits until all
    is done. The device's clock times at most `at_once` operations together, 0 for any number."""

    name: str
    job: Job
    elapsed: Clock | None = None
    wait: Callable[[], None] = lambda: None
    operations: int = 1
    at_once: int = 0
    taken: list[Taken] = field(default_factory=list)
    _next: int = 0

    def begin(self) -> range:
        """Give the indices of the next turn's operations: they continue after the last turn's, or restart."""
        if self._next + self.operations > self.job.most:
            self.job.reset()
            self._next = 0
        first, self._next = self._next, self._next + self.operations
        return range(first, self._next)

    def turn(self) -> Taken:
        """Time this many operations by the host's clock, then as many by the device's: reading that takes time too,
        2 us a launch on PoCL."""
        host, total = self._by_the_host(self.begin())
        device = None if self.elapsed is None else sum(self._on_the_device(self.elapsed, self.begin()))
        n = self.operations
        return Taken(None if device is None else device / n, host / n, total / n)

    def _by_the_host(self, todo: range) -> tuple[float, float]:
        """Give the seconds that the calls took, and those until all was done."""
        self.wait()
        began = time.perf_counter()
        self._do(todo)
        called = time.perf_counter()
        self.wait()
        return called - began, time.perf_counter() - began

    def _on_the_device(self, elapsed: Clock, todo: range) -> Iterator[float]:
        """Give the device's seconds of all operations, part by part."""
        step = self.at_once or len(todo)
        for first in range(0, len(todo), step):
            yield elapsed(partial(self._do, todo[first : first + step]))

    def _do(self, todo: range) -> None:
        for i in todo:
            self.job.do(i)

    def warm(self, seconds: float) -> None:
        """Find how many operations make a turn last this long. Two turns in a row must have enough of them: one may
        have been long because something was compiled meanwhile."""
        enough = 0
        for _ in range(WARM):
            total = max(self.turn().total, 1e-9)
            wanted = min(int(seconds / total) + 1, self.job.most)
            enough = enough + 1 if wanted <= self.operations else 0
            if enough == IN_A_ROW:
                return
            self.operations = max(self.operations, wanted)


def rounds(parties: Sequence[Party], pace: Pace) -> None:
    """Measure all parties, one after another; each round begins with another party. At least one round, however
    long it takes."""
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
    """Give the adapter's meter counts for one operation, from one more turn; None if it has no meter."""
    meter = getattr(adapter, "meter", None)
    if meter is None:
        return None
    todo, before = party.begin(), dict(meter())
    for i in todo:
        party.job.do(i)
    after = meter()
    return {name: (after[name] - before[name]) / party.operations for name in before}
