"""A run in several processes, the judges: each has a worker of its own, and judges one test after another as they
are handed out. What they find is put together in the order of the tests, so that a record tells the same however
many there were.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from kvconform.runner.tally import Tally
from kvconform.worker import memory

if TYPE_CHECKING:
    from kvconform.runner.run import Run

FORK = multiprocessing.get_context("fork")
"""What was collected is there in every judge."""

FEWEST = 16
"""Tests for which a judge more is worth the start of its worker."""

LAST_BREATH = 3.0
"""Seconds a judge has to tell what it judged, once it is interrupted."""


class Judged(NamedTuple):
    """What a test, or the part of it before an interruption, showed."""

    test: str
    tally: Tally


class Done(NamedTuple):
    """A test has ended: operations judged in it, and peaks of resident bytes so far: the judge's, its worker's."""

    operations: int
    memory: tuple[int, int]


@dataclass
class Judge:
    """One of them as the run sees it; `busy` is the number of its test, -1 for none."""

    process: Any
    pipe: Connection
    busy: int = -1


class Judges:
    """All of them, for the items of one session."""

    def __init__(self, run: Run, items: Sequence[pytest.Item], config: pytest.Config) -> None:
        self.run, self.items, self.config = run, items, config
        self._there: list[Judge] = []
        self._tallies: dict[int, Tally] = {}
        self._todo = iter(range(len(items)))

    def judge(self, processes: int) -> None:
        """Have every item judged. Interrupted, it keeps what was judged so far."""
        self.run.worker.close()  # the judges have their own
        try:
            for _ in range(processes):
                self._begin()
            while busy := [judge for judge in self._there if judge.busy >= 0]:
                for judge in _ready(busy, None):
                    self._hear(judge)
        except KeyboardInterrupt:
            self._interrupt()
            raise
        finally:
            for judge in self._there:
                _end(judge)
            for number in sorted(self._tallies):
                self.run.total.merge(self._tallies[number])

    def _begin(self) -> None:
        """One judge more, and its first test."""
        here, there = FORK.Pipe()
        others = [here, *(judge.pipe for judge in self._there)]
        process = FORK.Process(target=_judging, args=(self.run, self.items, self.config, there, others))
        process.start()
        there.close()
        self._there.append(Judge(process, here))
        self._go_on(self._there[-1])

    def _go_on(self, judge: Judge) -> None:
        """The next test; where there is none the judge ends by itself."""
        judge.busy = next(self._todo, -1)
        if judge.busy >= 0:
            item = self.items[judge.busy]
            self.config.hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        with suppress(BrokenPipeError):  # it died: the next that is heard of it is its end
            judge.pipe.send(judge.busy)

    def _hear(self, judge: Judge) -> None:
        """One thing that a judge said."""
        try:
            said = judge.pipe.recv()
        except (EOFError, OSError):  # in the middle of what it said, perhaps
            self._lost(judge)
            return
        if isinstance(said, Judged):
            self._keep(judge.busy, said)
        elif isinstance(said, Done):
            self.run.bench.operations += said.operations
            self.run.held(*said.memory)
            self._go_on(judge)
        else:
            hook = self.config.hook
            report = hook.pytest_report_from_serializable(config=self.config, data=said)
            hook.pytest_runtest_logreport(report=report)

    def _lost(self, judge: Judge) -> None:
        """A judge whose process died: its test is not judged; another judge goes on."""
        judge.process.join()
        test, how = self.items[judge.busy].nodeid, judge.process.exitcode
        self.run.total.problems.append(f"harness: {test}: the process that judged it ended with status {how}")
        self._there.remove(judge)
        judge.pipe.close()
        self._begin()

    def _interrupt(self) -> None:
        """Each judge tells what it judged of its test."""
        for judge in self._there:
            judge.process.terminate()
        until = time.monotonic() + LAST_BREATH
        while busy := [judge for judge in self._there if judge.busy >= 0]:
            ready = _ready(busy, max(0.0, until - time.monotonic()))
            for judge in ready:
                self._hear_last(judge)
            if not ready:
                return

    def _hear_last(self, judge: Judge) -> None:
        """One thing more of an interrupted judge, in the middle of which it may have been left before."""
        with suppress(Exception):
            said = judge.pipe.recv()
            if isinstance(said, Judged):
                self._keep(judge.busy, said)
            return
        judge.busy = -1

    def _keep(self, number: int, said: Judged) -> None:
        self.run.journal.write("judged", test=said.test, tally=said.tally.to_json())
        self._tallies[number] = said.tally


def _ready(judges: Sequence[Judge], seconds: float | None) -> list[Judge]:
    """Those that have said something."""
    said = wait([judge.pipe for judge in judges], seconds)
    return [judge for judge in judges if judge.pipe in said]


def _end(judge: Judge) -> None:
    """End it with its worker, whatever they do."""
    judge.pipe.close()
    judge.process.join(LAST_BREATH if judge.busy < 0 else 0)
    for pid in memory.family(judge.process.pid) if judge.process.is_alive() else ():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    judge.process.join()


class _Telling:
    """In a judge, in the run's place as pytest's plugin: what it would note is told. Its journal too."""

    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self.config, self.pipe = config, pipe
        self.judged = False
        """Whether it was told what the test at hand showed."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """How a test, its beginning or its end went."""
        self.pipe.send(self.config.hook.pytest_report_to_serializable(config=self.config, report=report))

    def write(self, event: str, **said: Any) -> None:
        """What was judged in a test: nothing else happens in a judge."""
        self.judged = True
        self.pipe.send(Judged(said["test"], Tally(**said["tally"])))

    def close(self) -> None:
        """The pipe ends with the process."""


def _judging(
    run: Run, items: Sequence[pytest.Item], config: pytest.Config, pipe: Connection, others: Sequence[Connection]
) -> None:
    """What a judge does: one test after another, until there are none or nobody asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run hears it, and interrupts its judges
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for other in others:
        other.close()
    config.pluginmanager.unregister(run)
    config.pluginmanager.register(told := _Telling(config, pipe))
    run.journal = told
    with suppress(EOFError, OSError):
        try:
            while (number := pipe.recv()) >= 0:
                told.judged = False
                pipe.send(_one(run, items[number]))
        except KeyboardInterrupt:
            if not told.judged:
                told.write("judged", test=run.bench.test, tally=run.bench.tally.to_json())
    run.worker.close()


def _one(run: Run, item: pytest.Item) -> Done:
    """Judge one test."""
    before = run.bench.operations
    run.bench.tally = Tally()
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    return Done(run.bench.operations - before, (memory.peak(), run.worker.peak()))
