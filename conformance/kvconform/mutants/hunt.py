"""The hunt for one mutant: the suite's worked examples, covers and explored traces, each until one shows it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from types import FrameType
from typing import Any

from kvconform.generate import frozen_covers
from kvconform.generate.fit_to_adapter import suits
from kvconform.generate.shrink import shrink
from kvconform.generate.strategies import by_chapter, sample
from kvconform.judge import trial
from kvconform.judge.trial import TrialResult
from kvconform.judge.worked_examples import disagreements
from kvconform.mutants.mutant import Mutant
from kvconform.worker.signals import handling
from kvspec.contract import CHAPTERS, Description, description
from kvspec.geometry import Config
from kvspec.reading.clauses import index
from kvspec.reading.examples import Example
from kvspec.registry import CACHES
from kvspec.session.driver import Session
from kvspec.trace import Trace

SPREAD = 100
"""Traces of a cover that are tried at first, spread over all; the others only where nothing finds the mutant."""

MOST = 500
"""Traces of a source and a chapter that are tried on what nothing else finds."""

FEW = 30
"""Explored traces that are tried at first on systematic mutants, of which there are thousands."""

EXPLORED = 60
"""Traces drawn for a chapter and kind of cache."""

SECONDS = 5.0
"""Time of the processor for one trace, after which the mutant hangs; on a busy machine that takes a while."""

WAITS = 12
"""So many times as long may be waited for a processor, or for nothing."""

ATTEMPTS = 120
"""Replays spent on making a trace short."""

SHORT = 3
"""Operations of a trace that need not be made shorter."""


class Hangs(BaseException):
    """A trace took too long. Not an Exception, so that no adapter catches it."""


@dataclass(frozen=True)
class Item:
    """A trace of a source; of a worked example, its table too."""

    trace: Trace
    example: Example | None = None


Hints = dict[str, tuple[Item, ...]]
"""Of each source, what to try first."""


@dataclass(frozen=True)
class Kill:
    """The trace on which a mutant was found, and what it showed."""

    source: str
    clauses: tuple[str, ...]
    trace: Trace
    message: str
    item: Item | None = None
    """What was tried."""


@dataclass
class Hunted:
    """What came of one mutant."""

    id: str
    kills: dict[str, Kill | None] = field(default_factory=dict)
    """Of each source that was tried, the first kill, or that there was none."""
    shortest: Kill | None = None
    right: bool | None = None
    """Whether one of the clauses that the mutant says it breaks was blamed; None if it names none."""
    seconds: float = 0.0

    @property
    def killed(self) -> bool:
        """Whether any source found it."""
        return self.shortest is not None

    @property
    def operations(self) -> int:
        """Operations of the shortest trace; 0 if there is none."""
        return len(self.shortest.trace.ops) if self.shortest else 0


def hunted(mutant: Mutant, hints: Hints | None = None) -> Hunted:
    """Try the mutant on all its sources, hints first; where a few traces of each do not find it, on all."""
    began = time.monotonic()
    hunt = _Hunt(mutant)
    found = Hunted(mutant.id)
    for source in SOURCES:
        found.kills[source] = hunt.first(source, chain((hints or {}).get(source, ()), hunt.some(source)))
        if found.kills[source] and mutant.first_is_enough:
            break
    for source in () if mutant.lives else SOURCES:
        if not any(found.kills.values()):
            found.kills[source] = hunt.first(source, hunt.all(source))
    found.shortest = hunt.shortest([k for k in found.kills.values() if k])
    found.right = bool(hunt.blamed & set(mutant.clauses)) if mutant.clauses else None
    found.seconds = time.monotonic() - began
    return found


def died(mutant: Mutant, how: str) -> Hunted:
    """A mutant whose hunt did not come to its end: whatever kills the judge's process is found too."""
    kill = Kill("examples", (), Trace(CHAPTERS[0], Config()), how)
    return Hunted(mutant.id, {"examples": kill}, kill)


class _Hunt:
    """One mutant's adapter, and the clauses blamed on it so far."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant, self.blamed = mutant, set[str]()
        self.chapters = mutant.chapters or tuple(dict.fromkeys(index()[c].chapter for c in mutant.clauses))
        self.adapter: Any = None
        self.about: Description | None = None
        try:
            with limited(SECONDS):
                self.adapter = mutant.adapter()
                self.about = description(self.adapter.describe())
        except (Exception, Hangs) as e:
            self.broken = f"the adapter cannot be made: {type(e).__name__}: {e}"

    def some(self, source: str) -> Iterator[Item]:
        """What is tried at first: of covers a part; of systematic mutants their own chapter, and all examples."""
        quick = self.mutant.cls == "systematic"
        chapters = self.chapters[:1] if quick and source != "examples" else self.chapters
        most = {"cover": SPREAD, "explored": FEW if quick else EXPLORED * len(CACHES)}
        return chain.from_iterable(_spread(SOURCES[source](p), most.get(source)) for p in chapters)

    def all(self, source: str) -> Iterator[Item]:
        """What is tried where that was not enough."""
        return chain.from_iterable(_spread(SOURCES[source](p), MOST) for p in self.chapters)

    def first(self, source: str, items: Iterator[Item]) -> Kill | None:
        """The first trace that finds it; of a real bug, one that blames the right clause if there is one."""
        first: Kill | None = None
        for item in items:
            kill = self._tried(source, item)
            self.blamed |= set(kill.clauses) if kill else set()
            if kill and (self._right(kill) or self.mutant.cls == "systematic"):
                return kill
            first = first or kill
        return first

    def _right(self, kill: Kill) -> bool:
        return bool(set(kill.clauses) & set(self.mutant.clauses))

    def _tried(self, source: str, item: Item) -> Kill | None:
        if self.about is None:
            return Kill(source, (), item.trace.cut(0), self.broken, item)
        if not suits(item.trace, self.about):
            return None  # it needs what is not declared
        seen = self.run(item.trace)
        if isinstance(seen, str):
            return Kill(source, (), item.trace, seen, item)
        wrong = self._misread(item.example, seen) if item.example and not seen.failed else []
        if wrong and item.example:
            return Kill(source, (item.example.clause,), item.trace, wrong[0], item)
        if not seen.failed:
            return None
        also = (item.example.clause,) if item.example else ()  # as the suite does, which reports its test
        blamed = tuple(dict.fromkeys((*seen.blamed, *also)))
        return Kill(source, blamed, seen.trace.cut(len(seen.steps)), seen.differences[0].message, item)

    def _misread(self, worked: Example, seen: TrialResult) -> list[str]:
        """What the table of a worked example says otherwise, where its clause binds at the level judged."""
        binds = seen.level == "storage" or index()[worked.clause].level == "visible"
        return disagreements(worked, seen, self.about) if binds and self.about is not None else []

    def run(self, trace: Trace) -> TrialResult | str:
        """One trial; or how it ended otherwise."""
        assert self.about is not None
        level = trial.level_of(trace, self.about)
        try:
            with limited(SECONDS, self.mutant.limit):
                session = Session(self.adapter, trial.observables(self.about, level))
                return trial.run(trace, session, self.about, level)
        except Hangs:
            return f"took more than {SECONDS:g} seconds"
        except Exception as e:
            return f"the judge could not go on: {type(e).__name__}: {e}"

    def shortest(self, kills: Sequence[Kill]) -> Kill | None:
        """The shortest of these, made shorter if it is long."""
        best = min(kills, key=lambda k: (not self._right(k), len(k.trace.ops)), default=None)
        if best is None or len(best.trace.ops) <= SHORT or not best.clauses:
            return best
        ends = time.monotonic() + SECONDS
        short = shrink(best.trace, lambda t: self._fails(t, best) if time.monotonic() < ends else 0, ATTEMPTS)
        seen = self.run(short)
        if isinstance(seen, str) or not seen.failed:
            return best
        return Kill(best.source, seen.blamed, short, seen.differences[0].message)

    def _fails(self, trace: Trace, kill: Kill) -> int:
        seen = self.run(trace)
        if isinstance(seen, str) or not seen.failed:
            return 0
        return len(seen.steps) if set(seen.blamed) & set(kill.clauses) else 0


@contextmanager
def limited(seconds: float, of_the_processor: float = 0.0) -> Iterator[None]:
    """Raise Hangs in what computes longer, or waits far longer; only in a process's first thread. After so many
    seconds of the processor, if any are given, the process ends."""

    def ring(signum: int, frame: FrameType | None) -> None:
        raise Hangs

    with handling(ring, signal.SIGALRM, signal.SIGVTALRM):
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds * WAITS)
        signal.setitimer(signal.ITIMER_PROF, of_the_processor)
        try:
            yield
        finally:
            for timer in (signal.ITIMER_VIRTUAL, signal.ITIMER_REAL, signal.ITIMER_PROF):
                signal.setitimer(timer, 0)


def _spread(items: Sequence[Item], most: int | None) -> Sequence[Item]:
    """At most about so many, spread over all."""
    return items if most is None else items[:: max(1, len(items) // most)]


@cache
def examples(chapter: str) -> tuple[Item, ...]:
    """The worked examples of a chapter."""
    return tuple(Item(e.trace, e) for c in index().values() if c.chapter == chapter for e in c.examples)


@cache
def covers(chapter: str) -> tuple[Item, ...]:
    """The traces of a chapter's frozen covers, shortest first."""
    found = (t for frozen in frozen_covers.load(chapter) for t in frozen.traces())
    return tuple(Item(t) for t in sorted(found, key=lambda t: len(t.ops)))


@cache
def explored(chapter: str) -> tuple[Item, ...]:
    """Traces as exploration draws them, the same every time."""
    return tuple(Item(t) for strategy in by_chapter.of(chapter) for t in sample.some(strategy, EXPLORED, seed=20))


SOURCES: dict[str, Callable[[str], tuple[Item, ...]]] = {
    "examples": examples,
    "cover": covers,
    "explored": explored,
}
"""Where traces come from, by what the report calls it."""
