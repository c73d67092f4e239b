"""A long soak: checks that correct adapters never fail, on very many drawn operations.

Each batch of traces is a task with its own seed. It draws from the strategies of one chapter after another, in all
forms that a run judges, and after each round the large traces of one size. It judges every adapter: the reference
by the list model, all others by the reference. A trace that fails is written to a file at once; another task then
makes it short, so that nothing is lost however the soak ends.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

from kvadapters.find import load
from kvconform.bugs import trace_sources
from kvconform.bugs.trace_sources import FORMS, Item
from kvconform.generate.large.boundaries import Size, sizes
from kvconform.generate.registry import explorations
from kvconform.generate.shrink.shrink import shrink
from kvconform.generate.strategies import sample, whole_system
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvconform.worker.tasks import Pool, ProcessDied, completed
from kvspec.contract import Description, description
from kvspec.notation import sentence
from kvspec.operations.table import caches_with
from kvspec.session.driver import Session
from kvspec.trace import Trace
from kvworkshop import correct_variants

BATCH = 40
"""Traces drawn at a time."""

ENOUGH = 20
"""After this many failures an adapter is no longer judged: more would tell nothing new."""


class Failure(NamedTuple):
    """A trace on which an adapter differed, and how."""

    trace: Trace
    message: str

    @classmethod
    def of(cls, seen: TrialResult) -> Failure:
        """From the trial that failed."""
        blamed = ", ".join(seen.blamed) or "no clause"
        return cls(seen.trace.cut(len(seen.steps)), f"{blamed}: {seen.differences[0].message}")


@dataclass(frozen=True)
class Judged:
    """One adapter in the process that judges it."""

    adapter: Any
    about: Description

    def run(self, trace: Trace) -> TrialResult:
        """One trial."""
        return trial.on(trace, partial(Session, self.adapter), self.about)

    def fails(self, trace: Trace) -> int:
        """Operations until it differs, or 0 if it does not."""
        seen = self.run(trace)
        return max(1, len(seen.steps)) if seen.failed else 0


@cache
def judged(name: str) -> Judged:
    """An adapter by its name, or a correct variant of the reference by that of its class."""
    variants = {v.__name__: v for v in correct_variants.VARIANTS}
    adapter = variants[name]() if name in variants else load(name)
    about = description(adapter.describe())
    return Judged(adapter, about.at_most("visible") if name == "reference" else about)


def describe(name: str) -> Description:
    """An adapter's description, asked in a process of the pool, because devices do not survive a fork."""
    return judged(name).about


class Part(NamedTuple):
    """What a batch showed of one adapter."""

    traces: int
    operations: Counter[str]
    """By source, as the matrix of mutants names it."""
    failures: tuple[Failure, ...]


class Batch(NamedTuple):
    """A task: draw traces of one source and judge them on adapters, which are named."""

    adapters: tuple[str, ...]
    chapters: tuple[str, ...]
    """Those of all adapters of the soak."""
    source: str
    seed: int

    @property
    def where(self) -> str:
        """What it draws."""
        return f"{self.source}, seed {self.seed}"

    def __call__(self) -> dict[str, Part]:
        """What each adapter showed."""
        sources = explored(self.chapters) | large(self.chapters)
        items = sources[self.source](self.seed)
        return {name: _part(judged(name), items) for name in self.adapters}


def _part(under_test: Judged, items: Sequence[tuple[str, Item]]) -> Part:
    operations, failures, traces = Counter[str](), list[Failure](), 0
    for source, item in items:
        if trace := trace_sources.judged(source, item, under_test.about):
            seen = under_test.run(trace)
            traces += 1
            operations[source] += len(seen.steps)
            failures += [Failure.of(seen)] if seen.failed else []
    return Part(traces, operations, tuple(failures))


class Shortening(NamedTuple):
    """A task: make the trace of a failure short."""

    adapter: str
    trace: Trace
    path: Path
    """Where the failure is written."""
    where: str
    """Its source and seed."""

    def __call__(self) -> Failure | None:
        """The same on a short trace, or None if it does not fail again."""
        seen = judged(self.adapter).run(shrink(self.trace, judged(self.adapter).fails))
        return Failure.of(seen) if seen.failed else None


Job = Batch | Shortening


def perform(job: Job) -> dict[str, Part] | Failure | None:
    """Do a task in the process that has it."""
    return job()


@dataclass
class Score:
    """The counts of one adapter."""

    name: str
    about: Description
    traces: int = 0
    found: list[Path] = field(default_factory=list)
    by_source: Counter[str] = field(default_factory=Counter)
    seed: int = 0
    """The largest of the batches judged."""
    fits: set[str] = field(default_factory=set)
    """What draws traces that this adapter is judged on."""

    @property
    def operations(self) -> int:
        """Operations judged, of all sources."""
        return self.by_source.total()


Source = Callable[[int], list[tuple[str, Item]]]
"""Draws the traces of a batch from a seed, each with its source as the matrix of mutants names it."""


@cache
def explored(chapters: tuple[str, ...]) -> dict[str, Source]:
    """Every strategy that adapters of these chapters can be judged by, by name."""
    found: dict[str, Any] = {}
    if set(caches_with("speculate")) & set(chapters):
        found["system"] = whole_system.explored(sorted(chapters))
    for chapter in chapters:
        found |= {f"{chapter}-{i}": e.strategy() for i, e in enumerate(explorations().get(chapter, ()), 1)}
    return {name: partial(_explored, strategy) for name, strategy in found.items()}


def _explored(strategy: Any, seed: int) -> list[tuple[str, Item]]:
    """Traces of a strategy, and some of them in each other form."""
    traces = sample.some(strategy, BATCH, seed)
    drawn = [("explored", Item(trace)) for trace in traces]
    return drawn + [(name, Item(trace)) for name, form in FORMS.items() for trace in form.some(traces)]


@cache
def large(chapters: tuple[str, ...]) -> dict[str, Source]:
    """Every size that is met in caches of these chapters, by name."""
    fitting = (size for size in sizes() if size.needs <= set(chapters))
    return {f"{size.name} of {size.chapter}": partial(_large, size) for size in fitting}


def _large(size: Size, seed: int) -> list[tuple[str, Item]]:
    return [("large", Item(trace, boundary=boundary)) for boundary, trace in size.traces(seed)]


class Soak:
    """Judges adapters until each has done the number of operations asked for, or has failed often enough."""

    def __init__(self, abouts: Mapping[str, Description], operations: int, folder: Path, seed: int = 0) -> None:
        """The descriptions of adapters, by name."""
        self.scores = {name: Score(name, about) for name, about in abouts.items()}
        self.operations, self.folder = operations, folder
        self.lost = list[str]()
        """Tasks whose process died, and how."""
        self._seeds = count(seed)
        self._chapters = tuple(dict.fromkeys(c for s in self.scores.values() for c in s.about.chapters))
        self._large = cycle(large(self._chapters))
        self._drawn = set[str]()
        self._shortenings = deque[Shortening]()

    def run(self, pool: Pool, progress: Callable[[], None] = lambda: None) -> None:
        """Draw and judge. Raises BrokenExecutor, KeyboardInterrupt; what was judged until then is counted."""
        for jobs in (self._jobs(), self._short()):
            for (job,), future in completed(pool, perform, jobs):
                try:
                    self._take(job, future.result())
                except ProcessDied as e:
                    self.lost.append(f"{job.where}: its process died with status {e.exitcode}")
                progress()
        if self.behind() and not any(self._sources()):
            raise RuntimeError("nothing that is drawn is within what is declared")

    def behind(self) -> tuple[str, ...]:
        """The adapters that are judged further."""
        every = self.scores.values()
        if len(self.lost) >= ENOUGH:
            return ()
        return tuple(s.name for s in every if s.operations < self.operations and len(s.found) < ENOUGH)

    @property
    def share(self) -> float:
        """The share of all operations asked for that were judged."""
        judged = sum(min(s.operations, self.operations) for s in self.scores.values())
        return judged / (self.operations * len(self.scores))

    def _jobs(self) -> Iterator[tuple[Job]]:
        """Batches, source after source, then one of large traces, until no adapter is behind; shortenings first."""
        while sources := tuple(self._sources()):
            for source in (*sources, *islice(self._large, 1)):
                yield from self._short()
                if not (behind := self.behind()):
                    return
                yield (Batch(behind, self._chapters, source, next(self._seeds)),)

    def _sources(self) -> Iterator[str]:
        """What may draw traces for an adapter that is behind: of what has drawn, only what fitted one of them."""
        fits = set[str]().union(*(self.scores[name].fits for name in self.behind()))
        yield from (s for s in explored(self._chapters) if s in fits or s not in self._drawn)

    def _short(self) -> Iterator[tuple[Job]]:
        while self._shortenings:
            yield (self._shortenings.popleft(),)

    def _take(self, job: Job, result: dict[str, Part] | Failure | None) -> None:
        if isinstance(job, Batch) and isinstance(result, dict):
            for name, part in result.items():
                self._count(self.scores[name], job, part)
            self._drawn.add(job.source)
        elif isinstance(job, Shortening) and isinstance(result, Failure):
            _write(job.path, result, job.where)

    def _count(self, score: Score, job: Batch, part: Part) -> None:
        score.traces += part.traces
        score.seed = max(score.seed, job.seed)
        score.by_source += part.operations
        score.fits |= {job.source} if part.traces else set()
        for failure in part.failures:
            self._keep(score, job, failure)

    def _keep(self, score: Score, job: Batch, failure: Failure) -> None:
        """Write the trace to a file, and give the task that shortens it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{score.name.replace(':', '.')}-{job.source}-{job.seed}-{len(score.found)}.json"
        score.found.append(path := self.folder / name)
        _write(path, failure, job.where)
        self._shortenings.append(Shortening(score.name, failure.trace, path, job.where))


def _write(path: Path, failure: Failure, where: str) -> None:
    """Write the trace, which `kvconform replay` reads, and a text that says how it failed."""
    path.write_text(json.dumps(failure.trace.to_json()) + "\n", encoding="utf-8")
    said = f"{where}: {failure.message}\n{sentence(failure.trace)}\n"
    path.with_suffix(".txt").write_text(said, encoding="utf-8")
