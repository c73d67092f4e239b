"""`kvconform mutants`: plants known bugs and shows which test finds each, and how soon."""

from __future__ import annotations

import re
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from functools import partial
from itertools import count
from pathlib import Path

from kvconform.mutants import hunts, matrix
from kvconform.mutants.hunt import HuntResult
from kvconform.mutants.kinds import KINDS
from kvconform.mutants.mutant import Mutant
from kvconform.runner import output
from kvconform.runner.pool import opened
from kvspec.errors import BadInput


def main(options: Namespace) -> int:
    """Hunt the chosen mutants; return 1 if one survives without an argument, or a control behaves wrongly."""
    chosen = selected(options)
    if not chosen:
        raise BadInput("no mutant matches; `kvconform mutants --list` names them all")
    if options.list:
        print("\n".join(f"{m.id}: {m.says}" for m in chosen))
        return 0
    tried = [m for m in chosen if options.argued or not m.equivalent]
    if not options.on:
        hunts.prepare(tried, options.processes, options.first)
    began = time.monotonic()
    found, lost = _hunted(tried, options)
    found += [HuntResult(m.id) for m in chosen if m.equivalent and not options.argued]
    made = matrix.made(chosen, found, time.monotonic() - began)
    write = partial(output.write, made, Path(options.report)) if options.report else None
    unwritten = output.deliver([made], options.format, write)
    return 3 if lost or unwritten else int(bool(matrix.wrong(made)))


def _hunted(tried: Sequence[Mutant], options: Namespace) -> tuple[list[HuntResult], bool]:
    """Hunt; give the results, and whether the pool was lost before the last one."""
    found = list[HuntResult]()
    try:
        with opened(options.processes, options.on, seconds=hunts.LONGEST_TASK, memory_limit=hunts.MEMORY) as pool:
            found.extend(_told(hunts.all_of(tried, pool, options.first), len(tried)))
    except BrokenExecutor as e:
        sys.stderr.write(f"kvconform: {e}; {len(found)} of {len(tried)} mutants were hunted\n")
        return found, True
    return found, False


def selected(options: Namespace) -> list[Mutant]:
    """Select the mutants asked for. With `--every N`, one systematic fault in N and one correct control in N."""
    every = (m for kind in options.kind or KINDS for m in KINDS[kind]())
    wanted = re.compile(options.match or "")
    chosen = (m for m in every if wanted.search(m.id))
    faults, controls = count(), count()
    numbers = ((m, faults if m.bug_class == "systematic" else controls if m.is_control else None) for m in chosen)
    return [m for m, number in numbers if number is None or next(number) % options.every == 0]


def _told(found: Iterable[HuntResult], count: int) -> Iterator[HuntResult]:
    """Pass each result on, with progress on standard error."""
    killed, last = 0, 0.0
    for i, one in enumerate(found, 1):
        killed += one.killed
        if not one.killed or time.monotonic() - last > 2 or i == count:
            last = time.monotonic()
            survivor = "" if one.killed else f"; not found: {one.id}"
            sys.stderr.write(f"kvconform mutants: [{i}/{count}] {killed} found{survivor}\n")
            sys.stderr.flush()
        yield one
