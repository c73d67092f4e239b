"""The process that is watched: probes, then worked examples and frozen covers on an adapter in process; or cases of
attention.

`python -m tools.sanitizers.watched_process CHECK EVERY [BUG]`. What it finds itself it prints as `report: {...}`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from kvconform.generate import frozen_covers
from kvconform.generate.claims import fit_to_adapter
from kvconform.judge import trial
from kvconform.judge.storage import Difference
from kvgpu.adapter import Caches
from kvgpu.memory.layout import Geometry, Place, move
from kvgpu.runtime import Block, Work
from kvgpu.runtimes import launch_shapes
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvgpu.runtimes.opencl import OpenCLRuntime
from kvspec.contract import Description, description
from kvspec.geometry import Array
from kvspec.reading.clauses import index
from kvspec.session.driver import Session
from kvspec.trace import Trace, caches_of
from tools.sanitizers import probes, steps, warps
from tools.sanitizers.checks import CHECKS, LOG, Check
from tools.sanitizers.findings import DIFFERENCE, DIVERGENCE, Report, refused
from tools.sanitizers.planted import Planted
from tools.sanitizers.planted_bugs import BUGS

WIDEST = 4
"""Larger windows are left out: the tools are slow, and a ring of four slots wraps as one of five does."""

TRACES = {"asan": 6000, "asan-copies": 2000, "tsan": 2000, "tsan-copies": 800}
TRACES |= {"oclgrind": 400, "oclgrind-uninitialised": 400}
"""Traces of covers that are replayed at most: as many of each cover, evenly spread over it."""

FEW = 60
"""The same for a planted bug, which shows early."""

PREPARE = ("prepare", "guards")
"""The kernels that make a new buffer ready."""


class Kept:
    """A runtime whose memory is never given back: Oclgrind takes what lies in memory used again for unwritten."""

    def __init__(self, runtime: Any, poison: bool) -> None:
        self._runtime, self._poison = runtime, poison
        self._handles: list[Any] = []

    def allocate(self, nbytes: int) -> Block:
        """New memory."""
        block: Block = self._runtime.allocate(nbytes)
        self._handles.append(block.handle)
        return block

    def launch(self, kernel: str, work: Work, *args: Block | int) -> None:
        """Start a kernel; rows are left as they are found where they shall not be poisoned."""
        if self._poison or kernel not in PREPARE:
            self._runtime.launch(kernel, work, *args)

    def upload(self, source: Array, to: Block) -> None:
        """Copy host bytes; a part of a block by way of another one and a kernel, if kernels write to it as well:
        Oclgrind takes what they write behind a part that the host wrote for unwritten."""
        if self._poison or source.nbytes == to.nbytes:
            self._runtime.upload(source, to)
            return
        with self._runtime.meter.paused():
            stage = self.allocate(source.nbytes)
        self._runtime.upload(source, stage)
        geometry = Geometry(1, source.nbytes, 0)
        with self._runtime.meter.paused():
            move(self._runtime, geometry, 1, *(Place.packed(b, geometry, 1).span() for b in (stage, to)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)


class Hasty:
    """A runtime with a bug: it gives back the first buffer of a launch before the kernel has run."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime

    def launch(self, kernel: str, work: Work, *args: Block | int) -> None:
        """Start a kernel on what is no longer there."""
        values = [a.handle.address if isinstance(a, Block) else a for a in args]
        if kernel not in PREPARE and isinstance(args[0], Block):
            args[0].release()
        self._runtime.run(kernel, *launch_shapes.gpu(work), *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)


def _snug(work: Work) -> tuple[launch_shapes.Axes, launch_shapes.Axes]:
    """Shape as on a GPU, with at most one idle row in a group: to a sanitizer idle items cost as much as others."""
    (lanes, rows, _), groups = launch_shapes.gpu(work)
    return (lanes, min(rows, work.rows + 1), 1), groups


def runtime(check: Check, bug: Planted | None) -> Any:
    """The kernels of a check, with the bug in them."""
    text = bug.plant(check.text) if bug else check.text
    if not check.sanitizer:
        return Kept(OpenCLRuntime("oclgrind", text=text, names=check.names, shape=_snug), check.poison)
    shape = _snug if check.sanitizer == "thread" else launch_shapes.gpu
    made = CudaCPURuntime(text, check.names, check.sanitizer, shape)
    return Hasty(made) if bug and not bug.old else made


def traces(
    adapter: Description, total: int, every: int = 1, poison: bool = True
) -> Iterator[tuple[str, list[Trace]]]:
    """What is replayed, by source, each with a name that says how much it is; of all that one in `every`. Where
    nothing is poisoned, what nobody wrote shows whatever lies there: nobody peeks at pages then, and no block is
    read whose padding would be decoded."""
    examples = [e.trace for c in index().values() for e in c.examples]
    yield _some("worked examples", _suitable(examples, adapter, poison), max(1, len(examples) // every))
    total //= every
    covers = [c for p in adapter.chapters for c in frozen_covers.load(p) if (c.start.config.window or 0) <= WIDEST]
    for cover in covers:
        found = _suitable(cover.traces(), adapter, poison)
        yield _some(f"cover {cover.name}", found, max(1, total // len(covers)))


def _suitable(given: Iterable[Trace], adapter: Description, peeks: bool) -> list[Trace]:
    seen = given if peeks else (_unseen(trace) for trace in given if not _decodes_padding(trace))
    return list(fit_to_adapter.fitted(seen, adapter))


def _decodes_padding(trace: Trace) -> bool:
    """Whether it has a padded block of rows in a form: all of a block is decoded, and nobody writes its padding."""
    return any(config.padding is not None and config.form is not None for config in caches_of(trace))


def _unseen(trace: Trace) -> Trace:
    """Without its peeks, which change nothing."""
    return replace(trace, ops=tuple(op for op in trace.ops if op["op"] != "peek"))


def _some(name: str, every: list[Trace], most: int) -> tuple[str, list[Trace]]:
    step = max(1, -(-len(every) // most))
    chosen = list(islice(every, 0, None, step))
    return f"{name}: {len(chosen)} of {len(every)} traces", chosen


def probe(made: Any, check: Check) -> Iterator[Report]:
    """The probes, each held to its result."""
    for each in probes.PROBES[check.dialect]:
        try:
            found, expected = probes.run(made, each)
        except RuntimeError as e:
            yield refused(str(e), each.name)
            continue
        if found.tolist() != expected.tolist():
            yield Report(DIFFERENCE, each.name, detail=f"expected {expected.tolist()}, found {found.tolist()}")


def replay(adapter: Caches, total: int, every: int, until: Callable[[], bool]) -> Iterator[Report]:
    """The traces, each compared with the reference; ends with a line that counts them. `until` may end it early."""
    told, replayed, operations = description(adapter.describe()), 0, 0
    for name, chosen in traces(told, total, every, adapter.space.checks):
        print(name, flush=True)
        for trace in chosen:
            if until():
                return
            level = trial.level_of(trace, told)
            outcome = trial.run(trace, Session(adapter, trial.observables(trace, told, level)), told, level)
            replayed, operations = replayed + 1, operations + len(outcome.steps)
            yield from map(_differs, outcome.differences[:1])
    print(f"replayed: {replayed} traces, {operations} operations", flush=True)


def _differs(difference: Difference) -> Report:
    message = difference.message
    return Report(DIVERGENCE if DIVERGENCE in message else DIFFERENCE, "", detail=message)


def reports(check: Check, every: int, bug: Planted | None) -> Iterator[Report]:
    """What the process itself finds in everything, or in one of every so many traces or cases."""
    if check.cases == steps.KERNEL:
        return steps.replay(steps.Device(check.sanitizer, bug), every)
    if check.cases:
        return warps.attend(check.cases, warps.Device(check.sanitizer, bug), every)
    made = runtime(check, bug)
    adapter = Caches(check.name, made, checks=check.poison)  # what fills rows with NaN fills the guard bands
    total = FEW if bug else TRACES[check.name]
    return chain(probe(made, check), replay(adapter, total, every, until=_logged if bug else _never))


def main(check: Check, every: int, bug: Planted | None) -> int:
    """Run it. Where a bug was planted, the first thing found ends it."""
    os.environ.pop("LD_PRELOAD", None)  # a compiler that this process starts need not be watched
    for report in reports(check, every, bug):
        print(f"report: {report.to_json()}", flush=True)
        if bug:
            break
    return 0


def _never() -> bool:
    return False


def _logged() -> bool:
    """Whether Oclgrind, which never ends a process, has written something."""
    log = os.environ.get(LOG, "")
    return os.path.isfile(log) and os.path.getsize(log) > 0


if __name__ == "__main__":
    named = {b.name: b for b in BUGS[sys.argv[1]]}
    sys.exit(main(CHECKS[sys.argv[1]], int(sys.argv[2]), named[sys.argv[3]] if len(sys.argv) > 3 else None))
