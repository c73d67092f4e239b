"""A long soak: a correct adapter is never accused, however many operations are drawn.

`python -m kvconform.soak ADAPTER --operations N --seed S` draws batches of traces with the strategies of all
profiles in turn, each batch with a seed of its own, and judges them in this process; the reference by the list
model, all others by the reference. What differs is written down at once, then made short, so that nothing is lost
however it ends. Status: 0 nothing was accused, 1 something was, 130 interrupted.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from kvadapters.find import load
from kvconform import trial
from kvconform.limits import suits, within
from kvconform.mutants import stored
from kvconform.shrink import shrink
from kvconform.strategies import drawn, exploring, system
from kvconform.trial import Outcome
from kvspec.contract import Description, description
from kvspec.geometry import CACHES
from kvspec.notation import sentence
from kvspec.session import Session
from kvspec.trace import Trace

BATCH = 40
"""Traces drawn at a time."""

EVERY = 10.0
"""Seconds between lines of progress."""

ENOUGH = 20
"""Accusations after which it ends: they would tell nothing new."""


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

    def run(self, trace: Trace) -> Outcome:
        """One trial."""
        level = trial.level_of(trace, self.about)
        session = Session(self.adapter, trial.observables(self.about, level))
        return trial.run(trace, session, self.about, level)

    def batch(self, source: str, traces: Sequence[Trace], seed: int) -> None:
        """Judge many traces of one source."""
        for trace in traces:
            fitted = within(trace, self.about)
            if not suits(fitted, self.about):
                continue
            seen = self.run(fitted)
            self.traces, self.operations = self.traces + 1, self.operations + len(seen.steps)
            self.by_source[source] = self.by_source.get(source, 0) + len(seen.steps)
            if seen.failed:
                self._keep(seen, source, seed)

    def _keep(self, seen: Outcome, source: str, seed: int) -> None:
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


def _write(path: Path, trace: Trace, seen: Outcome, source: str, seed: int) -> None:
    """The trace, which `kvconform replay` reads; beside it what was seen."""
    path.write_text(json.dumps(trace.to_json()) + "\n", encoding="utf-8")
    said = f"{source}, seed {seed}: {', '.join(seen.blamed) or 'no clause'}: {seen.differences[0].message}"
    path.with_suffix(".txt").write_text(f"{said}\n{sentence(trace)}\n", encoding="utf-8")


def sources(adapter: Description) -> dict[str, Any]:
    """Every strategy that an adapter of these profiles can be judged by, by name."""
    found: dict[str, Any] = {}
    if set(CACHES) & set(adapter.profiles):
        found["system"] = system.explored(sorted(adapter.profiles))
    for profile in adapter.profiles:
        found |= {f"{profile}-{i}": strategy for i, strategy in enumerate(exploring.of(profile), 1)}
    return found


def soaked(soak: Soak, operations: int, seed: int, tells: Callable[[Soak], None]) -> Soak:
    """Draw and judge, source after source, until so many operations are done or enough was found."""
    left = sources(soak.about)
    for number, source in zip(count(seed), _in_turn(left), strict=False):
        if soak.operations >= operations or len(soak.found) >= ENOUGH:
            return soak
        soak.batch(source, drawn.some(left[source], BATCH, number), number)
        soak.seed = number
        tells(soak)
        if source not in soak.by_source:
            del left[source]  # nothing that it draws is within what is declared
    raise RuntimeError("nothing that is drawn is within what is declared")


def _in_turn(left: dict[str, Any]) -> Iterator[str]:
    while left:
        yield from list(left)


class _Progress:
    """A line on standard error every few seconds."""

    def __init__(self, operations: int) -> None:
        self.operations, self.began = operations, time.monotonic()
        self.last = self.began

    def __call__(self, soak: Soak) -> None:
        now = time.monotonic()
        if now - self.last > EVERY:
            self.last = now
            sys.stderr.write(f"kvconform soak: {told(soak)} of {self.operations}, {now - self.began:.0f} s\n")
            sys.stderr.flush()


def told(soak: Soak) -> str:
    """How far it came, in a line."""
    return f"{soak.name}: {soak.traces} traces, {len(soak.found)} accused, {soak.operations} operations"


def adapter(name: str) -> Any:
    """An adapter by its name; or a correct variant of the reference by that of its class."""
    variants = {v.__name__: v for v in stored.VARIANTS}
    return variants[name]() if name in variants else load(name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak one adapter."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    soak, status = Soak(options.adapter, adapter(options.adapter), Path(options.out)), 0
    try:
        soaked(soak, options.operations, options.seed, _Progress(options.operations))
    except KeyboardInterrupt:
        status = 130
    print(f"{told(soak)}, up to seed {soak.seed}{' (interrupted)' if status else ''}")
    print("  " + ", ".join(f"{source} {n}" for source, n in soak.by_source.items()))
    for path in soak.found:
        print(f"  {path}")
    return 1 if soak.found else status


def _options(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(prog="python -m kvconform.soak", description=__doc__.splitlines()[0])
    parser.add_argument(
        "adapter", help="a name, module:Class, or one of " + ", ".join(v.__name__ for v in stored.VARIANTS)
    )
    parser.add_argument("--operations", type=int, default=1_000_000, help="operations to judge (1000000)")
    parser.add_argument("--seed", type=int, default=0, help="the first batch's seed (0)")
    parser.add_argument("--out", default="kvconform-soak", metavar="DIR", help="where accusing traces are written")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
