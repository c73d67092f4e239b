"""A long soak: correct adapters are never accused, however many operations are drawn.

`python -m kvconform.mutants.soak ADAPTER... --operations N --seed S` draws batches of traces with the strategies
of all
chapters in turn, each batch with a seed of its own, and judges them on every adapter, each by itself: the reference
by the list model, all others by the reference. Several processes share the seeds. What differs is written down at
once, then made short, so that nothing is lost however it ends. Status: 0 nothing was accused, 1 something was, 130
interrupted.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

from kvadapters.find import load
from kvconform.generate.fit_to_adapter import fitted
from kvconform.generate.shrink import shrink
from kvconform.generate.strategies import by_chapter, sample, whole_system
from kvconform.judge import trial
from kvconform.judge.trial import TrialResult
from kvconform.mutants import correct_variants
from kvconform.worker.signals import handling
from kvspec.contract import Description, description
from kvspec.operations.notation import sentence
from kvspec.registry import CACHES
from kvspec.session.driver import Session
from kvspec.trace import Trace

BATCH = 40
"""Traces drawn at a time."""

EVERY = 10.0
"""Seconds between lines of progress."""

ENOUGH = 20
"""Accusations after which it ends: they would tell nothing new."""


INTERRUPTIONS = signal.SIGINT, signal.SIGTERM


@dataclass
class Soak:
    """One adapter, how much was judged on it, and what was found."""

    name: str
    adapter: Any
    folder: Path
    about: Description = field(init=False)
    operations: int = 0
    traces: int = 0
    found: list[Path] = field(default_factory=list)
    by_source: dict[str, int] = field(default_factory=dict)
    seed: int = 0
    """That of the last batch that was judged whole."""

    def __post_init__(self) -> None:
        about = description(self.adapter.describe())
        self.about = about.at_most("visible") if self.name == "reference" else about

    def run(self, trace: Trace) -> TrialResult:
        """One trial."""
        level = trial.level_of(trace, self.about)
        session = Session(self.adapter, trial.observables(self.about, level))
        return trial.run(trace, session, self.about, level)

    def batch(self, source: str, traces: Sequence[Trace], seed: int) -> None:
        """Judge many traces of one source."""
        for trace in fitted(traces, self.about):
            seen = self.run(trace)
            self.traces, self.operations = self.traces + 1, self.operations + len(seen.steps)
            self.by_source[source] = self.by_source.get(source, 0) + len(seen.steps)
            if seen.failed:
                self._keep(seen, source, seed)

    def _keep(self, seen: TrialResult, source: str, seed: int) -> None:
        """Write the trace down as it is, then again once it is short."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.name.replace(':', '.')}-{source}-{seed}-{len(self.found)}.json"
        self.found.append(path)
        whole = seen.trace.cut(len(seen.steps))
        _write(path, whole, seen, source, seed)
        short = shrink(whole, self._fails)
        again = self.run(short)
        if again.failed:
            _write(path, short, again, source, seed)

    def _fails(self, trace: Trace) -> int:
        seen = self.run(trace)
        return max(1, len(seen.steps)) if seen.failed else 0


def _write(path: Path, trace: Trace, seen: TrialResult, source: str, seed: int) -> None:
    """The trace, which `kvconform replay` reads; beside it what was seen."""
    path.write_text(json.dumps(trace.to_json()) + "\n", encoding="utf-8")
    said = f"{source}, seed {seed}: {', '.join(seen.blamed) or 'no clause'}: {seen.differences[0].message}"
    path.with_suffix(".txt").write_text(f"{said}\n{sentence(trace)}\n", encoding="utf-8")


def sources(chapters: Sequence[str]) -> dict[str, Any]:
    """Every strategy that adapters of these chapters can be judged by, by name."""
    found: dict[str, Any] = {}
    if set(CACHES) & set(chapters):
        found["system"] = whole_system.explored(sorted(chapters))
    for chapter in chapters:
        found |= {f"{chapter}-{i}": strategy for i, strategy in enumerate(by_chapter.of(chapter), 1)}
    return found


def soaked(soaks: Sequence[Soak], operations: int, seeds: Iterator[int], goes_on: Callable[[], bool]) -> None:
    """Draw, and judge on each that is behind, source after source, until so many operations are done on every
    adapter, or enough was found, or after a batch it is not to go on."""
    left = sources(list(dict.fromkeys(p for s in soaks for p in s.about.chapters)))
    for seed, source in zip(seeds, _in_turn(left), strict=False):
        behind = [s for s in soaks if s.operations < operations and len(s.found) < ENOUGH]
        if not behind:
            return
        traces = sample.some(left[source], BATCH, seed)
        for soak in behind:
            soak.batch(source, traces, seed)
            soak.seed = seed
        if not goes_on():
            return
        if not any(source in s.by_source for s in behind):
            del left[source]  # nothing that it draws is within what is declared
    raise RuntimeError("nothing that is drawn is within what is declared")


def _in_turn(left: dict[str, Any]) -> Iterator[str]:
    while left:
        yield from list(left)


class _Progress:
    """A line on standard error every few seconds; and whether somebody asked for the end."""

    def __init__(self, soaks: Sequence[Soak], operations: int) -> None:
        self.soaks, self.operations, self.began = soaks, operations, time.monotonic()
        self.last, self.interrupted = self.began, False

    def interrupt(self, signum: int, frame: FrameType | None) -> None:
        """End after this batch, as what draws it may lose an exception; asked again, at once."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self.last > EVERY:
            self.last = now
            done = ", ".join(
                f"{s.name} {s.operations}{f' ({len(s.found)} accused)' * bool(s.found)}" for s in self.soaks
            )
            sys.stderr.write(f"kvconform soak: {done} of {self.operations} operations, {now - self.began:.0f} s\n")
            sys.stderr.flush()
        return not self.interrupted


def told(soak: Soak) -> str:
    """How far it came, in a line."""
    return f"{soak.name}: {soak.traces} traces, {len(soak.found)} accused, {soak.operations} operations"


def adapter(name: str) -> Any:
    """An adapter by its name; or a correct variant of the reference by that of its class."""
    variants = {v.__name__: v for v in correct_variants.VARIANTS}
    return variants[name]() if name in variants else load(name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak adapters, in as many processes as are asked for."""
    options = _options(arguments)
    if options.processes == 1:
        return _share(options, 0)
    fork = multiprocessing.get_context("fork")
    shares = [fork.Process(target=_exits, args=(options, i)) for i in range(options.processes)]
    for share in shares:
        share.start()

    def pass_on(signum: int, frame: FrameType | None) -> None:
        for share in shares if signum == signal.SIGTERM else ():  # a terminal interrupts them by itself
            share.terminate()

    with handling(pass_on, *INTERRUPTIONS):
        for share in shares:
            share.join()
    return max(abs(share.exitcode or 0) for share in shares)


def _exits(options: Namespace, share: int) -> None:
    sys.exit(_share(options, share))


def _share(options: Namespace, share: int) -> int:
    """Soak on one share of the seeds, and tell."""
    soaks = [Soak(name, adapter(name), Path(options.out)) for name in options.adapters]
    operations = -(-options.operations // options.processes)
    progress = _Progress(soaks, operations)
    with handling(progress.interrupt, *INTERRUPTIONS), suppress(KeyboardInterrupt):
        soaked(soaks, operations, count(options.seed + share, options.processes), progress)
    lines = (line for soak in soaks for line in _lines(soak, progress.interrupted))
    sys.stdout.write("".join(f"{line}\n" for line in lines))  # at once, lest others write in between
    sys.stdout.flush()
    return 1 if any(s.found for s in soaks) else 130 * progress.interrupted


def _lines(soak: Soak, interrupted: bool) -> Iterator[str]:
    yield f"{told(soak)}, up to seed {soak.seed}{' (interrupted)' if interrupted else ''}"
    yield "  " + ", ".join(f"{source} {n}" for source, n in soak.by_source.items())
    yield from (f"  {path}" for path in soak.found)


def _options(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(prog="python -m kvconform.mutants.soak", description=__doc__.splitlines()[0])
    variants = ", ".join(v.__name__ for v in correct_variants.VARIANTS)
    parser.add_argument(
        "adapters", nargs="+", metavar="ADAPTER", help=f"a name, module:Class, or one of {variants}"
    )
    parser.add_argument("--operations", type=int, default=1_000_000, help="operations to judge on each (1000000)")
    parser.add_argument("--seed", type=int, default=0, help="the first batch's seed (0)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many (one for each core)")
    parser.add_argument("--out", default="kvconform-soak", metavar="DIR", help="where accusing traces are written")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
