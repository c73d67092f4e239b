"""How the tests judge a fake: in this process through the bytes of the wire, or in a process of its own."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from kvadapters.serve import Server
from kvconform.checks import by_claim, covers, examples, honesty, laws
from kvconform.generate import frozen_covers
from kvconform.generate.strategies import cache_moves, caches
from kvconform.laws.registry import LAWS
from kvconform.runner.record.record import record
from kvconform.runner.under_test import AdapterUnderTest
from kvconform.runner.verdict.known import KnownDeviation, applying, reasons
from kvconform.runner.verdict.tally import Tally
from kvconform.worker.client import ProtocolBroken, Worker, python_worker
from kvconform.worker.process import Answer
from kvspec.contract import CHAPTERS, Description, description
from kvspec.reading.clauses import examples_of, index
from kvspec.records.run import HELD, ClauseRecord, Record
from kvspec.registry import CACHES
from kvspec.wire import framing
from kvworkshop import correct_variants
from kvworkshop import fakes as mutants_fakes
from support import fakes
from support.fakes import adapters as fake_adapters
from support.fakes import declarations as fake_declarations
from support.fakes import endings as fake_endings
from support.fakes import engines as fake_engines

COVER = 5
"""Traces of each frozen cover that a fake is judged on here, or up to twice as many: one in so many."""

KINDS = {
    "growing": cache_moves.BASE,
    "ring": cache_moves.BASE,
    "mask": cache_moves.MASKS,
    "snapshot": cache_moves.SNAPSHOTS,
}


class Wired:
    """A worker in this process: every question and answer is encoded and decoded as on the wire. With `all`, as in
    a process in another language, nothing is hidden that is not claimed."""

    has_grown = False

    def __init__(self, name: str, all: bool = True) -> None:
        self.server = Server(name, all=all)
        self.answers = deque[Answer]()

    def send(self, head: dict[str, Any], tensors: Any = None) -> None:
        (question,) = framing.Decoder().feed(framing.encode({"id": 1, **head}, tensors))
        ((answer, arrays),) = framing.Decoder().feed(self.server.answer(*question))
        assert answer.pop("id") == 1
        self.answers.append((answer, arrays))

    def receive(self) -> Answer:
        return self.answers.popleft()

    def close(self) -> None:
        """It is in this process, and goes on."""

    def broken(self, message: str) -> ProtocolBroken:
        return ProtocolBroken(message)

    def describe(self) -> Description:
        self.send({"op": "describe", "protocol": framing.PROTOCOL})
        answer, _ = self.receive()
        return description(answer["describe"])


def fake(name: str) -> str:
    """A fake, named as an adapter is."""
    modules = mutants_fakes, correct_variants, fake_adapters, fake_declarations, fake_endings
    module = next(m for m in modules if hasattr(m, name))
    return f"{module.__name__}:{name}"


@cache
def judged(name: str, chapters: tuple[str, ...] = CHAPTERS, traces: int = 5, level: str | None = None) -> Record:
    """The record of a short run of all sources on a fake that can be trusted not to hang or die."""
    return record_of(fake(name), chapters, traces, level)


def record_of(
    adapter: str,
    chapters: tuple[str, ...] = CHAPTERS,
    traces: int = 5,
    level: str | None = None,
    known: tuple[KnownDeviation, ...] = (),
    all: bool = False,
    only: tuple[str, ...] = (),
) -> Record:
    """The same for any adapter by its name, again each time. With `all`, what it does not claim is not hidden. With
    `only`, it is judged on the worked examples of these clauses alone."""
    worker: Any = Wired(adapter, all)
    about = worker.describe()
    claimed = about.at_most("visible") if level == "visible" else about
    under_test = AdapterUnderTest(worker, claimed, traces, known=applying(known, about))
    total = Tally()
    for test, work in _examples(under_test, only) if only else _sources(under_test, chapters):
        with under_test.judging(test) as tally:
            work()
        total.merge(tally)
    asked = {i: c.on(chapters) for i, c in index().items() if c.claimed(chapters)}
    selected = {i: index()[i] for i in only} or asked
    selection = {"known": reasons(under_test.known)} if under_test.known else {}
    return record(total, under_test.adapter, selected, ABOUT | {"selection": selection})


def _sources(under_test: AdapterUnderTest, chapters: tuple[str, ...]) -> Any:
    declared = [p for p in chapters if p in under_test.adapter.chapters]
    yield "honesty", partial(honesty.judge, under_test)
    for worked in (e for c in declared for e in examples_of(c)):
        yield f"example {worked.id}", partial(examples.judge, under_test, worked)
    for check in (c for c in by_claim.checks() if c.chapter in declared):
        yield check.id, partial(check.run, under_test)
    for chapter in declared:
        for frozen in frozen_covers.load(chapter):
            short = replace(frozen, lines=frozen.lines[:: max(1, len(frozen.lines) // COVER)])
            yield f"cover {frozen.name}", partial(covers.judge, under_test, short)
        for stated in LAWS:
            if stated.chapter == chapter and set(stated.needs) <= set(under_test.adapter.chapters):
                yield stated.check, partial(laws.judge, under_test, stated)
        for name in ({chapter} & set(CACHES) or CACHES) if chapter in KINDS else ():
            if name in under_test.adapter.chapters:
                yield (
                    f"explore {chapter}",
                    partial(under_test.explore, partial(caches.traces, name, KINDS[chapter]), name),
                )


def _examples(under_test: AdapterUnderTest, clauses: Iterable[str]) -> Any:
    claimed = under_test.adapter.chapters
    for worked in (e for name in clauses for e in index()[name].examples if e.trace.kind in claimed):
        yield f"example {worked.id}", partial(examples.judge, under_test, worked)


ABOUT: dict[str, Any] = {
    "started": "2026-01-01T00:00:00+00:00",
    "seconds": 0.0,
    "partial": False,
    "partial_reason": "",
    "command": [],
    "selection": {},
    "memory": {"parent": 0, "child": 0},
}


def engine(lie: str) -> list[str]:
    """The command line of a process adapter that tells this lie."""
    return [sys.executable, fake_engines.__file__, lie]


def ended(name: str, *clauses: str, **limits: Any) -> Record:
    """The record of the first example of some clauses, on a fake or an engine in a process of its own."""
    command = engine(name) if name[0].islower() else python_worker(fake(name))
    with Worker(command, env=fakes.environment(), **limits) as worker:
        under_test = AdapterUnderTest(worker, worker.describe())
        total = Tally()
        for worked in (index()[c].examples[0] for c in clauses):
            with under_test.judging(f"example {worked.id}") as tally:
                examples.judge(under_test, worked)
            total.merge(tally)
    return record(total, under_test.adapter, {c: index()[c] for c in clauses}, ABOUT)


def verdicts(whole: Record) -> dict[str, str]:
    """The verdict on each clause."""
    return {c.id: c.verdict for c in whole.clauses}


def clause(whole: Record, name: str) -> ClauseRecord:
    """What the record says of one clause."""
    return next(c for c in whole.clauses if c.id == name)


def broken(whole: Record) -> set[str]:
    """The clauses that are broken."""
    return {i for i, v in verdicts(whole).items() if v not in (*HELD, "NOT_CLAIMED", "NOT_RUN")}


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def workers_of(folder: str) -> list[int]:
    """Processes whose command line or environment names this text."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if folder.encode() in Path(f"/proc/{entry}/environ").read_bytes():
                found.append(int(entry))
        except OSError:
            continue
    return [pid for pid in found if alive(pid)]
