"""The hunt for one mutant: it is tried on the traces of each source, until one shows it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from kvconform.bugs.mutant import Mutant
from kvconform.bugs.time_limit import Hang, time_limit
from kvconform.bugs.trace_sources import SOONEST, SOURCES, Hints, Item, judged
from kvconform.generate.shrink.shrink import shrink
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvconform.judge.worked_examples import disagreements
from kvspec.contract import CHAPTERS, Description, description
from kvspec.geometry import Config
from kvspec.operations.table import parts_of
from kvspec.reading.clauses import index
from kvspec.reading.examples import Example
from kvspec.session.driver import Session
from kvspec.trace import Trace

SPREAD = 100
"""Traces of a cover that are tried first, spread over all; the others only where nothing finds the mutant."""

MOST = 500
"""Traces of a source and a chapter that are tried on a mutant that nothing else finds."""

FEW = 30
"""Traces of a source that are tried first where one kill is enough: there are thousands of systematic mutants."""

SECONDS = 5.0
"""Processor seconds for one trace. A mutant that takes longer counts as hanging."""

CONTROL_SECONDS = 120.0
"""The same for a correct cache, which may be as slow as it likes: linked rows take long where there are 8,193."""

ATTEMPTS = 120
"""Replays spent on shortening a trace, and on what came of it."""

SHORT = 3
"""A trace of at most this many operations is not shortened."""


AGAIN = "again"
"""Where hints hold the trace that showed a systematic fault before. What shows on it again is tried on no other."""


@dataclass(frozen=True)
class Kill:
    """The trace that showed a mutant, and how."""

    source: str
    clauses: tuple[str, ...]
    """The clauses that were blamed."""
    trace: Trace
    message: str
    item: Item | None = None
    """What was tried, or None if the trace was shortened."""


@dataclass
class HuntResult:
    """What found a mutant."""

    id: str
    kills: dict[str, Kill | None] = field(default_factory=dict)
    """The first kill of each source that was tried, or None if the source does not find it."""
    shortest: Kill | None = None
    right: bool | None = None
    """Whether a clause was blamed that the mutant says it breaks, or None if it names none."""
    seconds: float = 0.0

    @property
    def killed(self) -> bool:
        """Whether any source found it."""
        return self.shortest is not None

    @property
    def operations(self) -> int:
        """Operations of the shortest trace, or 0 if there is none."""
        return written(self.shortest.trace) if self.shortest else 0


def hunt(mutant: Mutant, hints: Hints | None = None, first: bool = False) -> HuntResult:
    """Try a mutant on a few traces of each source, hints first; on all of them if those do not find it.

    A trace that showed it before, under AGAIN, is enough if it shows it again. With `first` the hunt ends with the
    first source that finds the mutant, and leaves that trace as it is.
    """
    began = time.monotonic()
    hunter, result = _Hunter(mutant, first), HuntResult(mutant.id)
    if kill := hunter.again((hints or {}).get(AGAIN, ())):
        return HuntResult(mutant.id, {kill.source: kill}, kill, seconds=time.monotonic() - began)
    for source in SOONEST if first else SOURCES:
        result.kills[source] = hunter.first(source, chain((hints or {}).get(source, ()), hunter.some(source)))
        if result.kills[source] and (first or mutant.stop_at_first_kill):
            break
    for source in () if mutant.is_control else SOURCES:
        if not any(result.kills.values()):
            result.kills[source] = hunter.first(source, hunter.all(source))
    result.shortest = hunter.shortest([k for k in result.kills.values() if k], shorten=not first)
    result.right = bool(hunter.blamed & set(mutant.clauses)) if mutant.clauses else None
    result.seconds = time.monotonic() - began
    return result


def death(mutant: Mutant, how: str) -> HuntResult:
    """The result of a hunt that the mutant ended with its process: that counts as found."""
    kill = Kill("examples", (), Trace(CHAPTERS[0], Config()), how)
    return HuntResult(mutant.id, {"examples": kill}, kill)


class _Hunter:
    """Tries one mutant's adapter on traces, and collects the clauses that are blamed."""

    def __init__(self, mutant: Mutant, first: bool = False) -> None:
        self.mutant, self.blamed, self.tried = mutant, set[str](), set[int]()
        self.systematic = mutant.bug_class == "systematic"
        self.few = self.systematic or (first and not mutant.is_control)
        broken = (chapter for c in mutant.clauses for chapter in index()[c].chapters)
        self.chapters = mutant.chapters or tuple(dict.fromkeys(broken))
        self.adapter: Any = None
        self.about: Description | None = None
        try:
            with time_limit(SECONDS):
                self.adapter = mutant.adapter()
                self.about = description(self.adapter.describe())
        except (Exception, Hang) as e:
            self.broken = f"the adapter cannot be made: {type(e).__name__}: {e}"

    def again(self, items: Sequence[Item]) -> Kill | None:
        """What shows the mutant as before."""
        kills = (self._try("examples" if item.example else AGAIN, item) for item in items)
        return next((kill for kill in kills if kill), None)

    def some(self, source: str) -> Iterator[Item]:
        """Give what is tried first: a part of the covers, and a part of what is drawn if one kill is enough. On
        systematic mutants that is all examples, and other sources of only one chapter."""
        chapters = self.chapters[:1] if self.systematic and source != "examples" else self.chapters
        most = {"cover": SPREAD} if source in ("examples", "cover") or not self.few else {source: FEW}
        return chain.from_iterable(_spread(SOURCES[source](c), most.get(source)) for c in chapters)

    def all(self, source: str) -> Iterator[Item]:
        """What is tried if `some` was not enough."""
        return chain.from_iterable(_spread(SOURCES[source](c), MOST) for c in self.chapters)

    def first(self, source: str, items: Iterator[Item]) -> Kill | None:
        """The first kill; for a real bug the first that blames a right clause, if there is one."""
        first: Kill | None = None
        for item in (item for item in items if id(item) not in self.tried):
            self.tried.add(id(item))
            kill = self._try(source, item)
            self.blamed |= set(kill.clauses) if kill else set()
            if kill and self.enough(kill):
                return kill
            first = first or kill
        return first

    def enough(self, kill: Kill) -> bool:
        """Whether no other kill is needed: for a real bug, whether a right clause is blamed."""
        return self.systematic or not self.mutant.clauses or self._right(kill)

    def _right(self, kill: Kill) -> bool:
        return bool(set(kill.clauses) & set(self.mutant.clauses))

    def _try(self, source: str, item: Item) -> Kill | None:
        if self.about is None:
            return Kill(source, (), item.trace.cut(0), self.broken, item)
        trace = judged(source, item, self.about)
        if trace is None:
            return None
        result = self.run(trace)
        if isinstance(result, str):
            return Kill(source, (), trace, result, item)
        wrong = self._misread(item.example, result) if item.example and not result.failed else []
        if wrong and item.example:
            return Kill(source, (item.example.clause,), trace, wrong[0], item)
        if not result.failed:
            return None
        own = [c for c in result.exercised() if item.example and c == item.example.clause]
        blamed = tuple(dict.fromkeys((*result.blamed, *own)))  # all traces tell whether it shows what came before
        return Kill(source, blamed, result.trace.cut(len(result.steps)), result.differences[0].message, item)

    def _misread(self, worked: Example, result: TrialResult) -> list[str]:
        """How the table of a worked example disagrees, if its clause applies at the judged level."""
        binds = result.level == "storage" or index()[worked.clause].level == "visible"
        return disagreements(worked, result, self.about) if binds and self.about is not None else []

    @property
    def seconds(self) -> float:
        """Processor seconds for one trace."""
        return CONTROL_SECONDS if self.mutant.is_control else SECONDS

    def run(self, trace: Trace) -> TrialResult | str:
        """The result of one trial; what happened, if it did not come to its end."""
        assert self.about is not None
        try:
            with time_limit(self.seconds, self.mutant.limit):
                return trial.on(trace, partial(Session, self.adapter), self.about)
        except Hang:
            return f"took more than {self.seconds:g} seconds"
        except Exception as e:
            return f"the judge could not go on: {type(e).__name__}: {e}"

    def shortest(self, kills: Sequence[Kill], shorten: bool = True) -> Kill | None:
        """The shortest kill, shortened further if it is long; one that blames a right clause, if there is one."""
        if not self.systematic:  # an adapter may keep something of the traces before: what shows it alone is better
            kills = [k for k in kills if not k.trace.ops or self._fails(k.trace, k)] or kills
        best = min(kills, key=lambda k: (not self._right(k), written(k.trace)), default=None)
        if best is None or not shorten or written(best.trace) <= SHORT or not best.clauses:
            return best
        short = self._shortened(best)
        result = self._alone(short)
        if isinstance(result, str) or not result.failed:
            return best
        return Kill(best.source, result.blamed, short, result.differences[0].message)

    def _shortened(self, best: Kill) -> Trace:
        """The trace of a kill made shorter, and that again as long as it becomes shorter and there is time."""
        ends, trace, longer = time.process_time() + SECONDS, best.trace, sys.maxsize
        while written(trace) < longer:
            longer = written(trace)
            trace = shrink(trace, lambda t: self._fails(t, best) if time.process_time() < ends else 0, ATTEMPTS)
        return trace

    def _alone(self, trace: Trace) -> TrialResult | str:
        """The result of a trial; of a bug that may keep something, on an adapter that has met no other trace."""
        self.adapter = self.adapter if self.systematic else self.mutant.adapter()
        return self.run(trace)

    def _fails(self, trace: Trace, kill: Kill) -> int:
        """Steps until a trace fails with a clause of this kill, or 0 if it does not."""
        result = self._alone(trace)
        if isinstance(result, str) or not result.failed:
            return 0
        return len(result.steps) if set(result.blamed) & set(kill.clauses) else 0


def written(trace: Trace) -> int:
    """Count the operations of a trace as they are written: a run counts as many as it repeats, not as one."""
    return sum(len(parts_of(op)) for op in trace.ops)


def _spread(items: Sequence[Item], most: int | None) -> Sequence[Item]:
    """About `most` of these, spread over all, or all if None."""
    return items if most is None else items[:: max(1, len(items) // most)]
