"""`kvconform mutants`: plants known bugs and shows which test finds each, and how soon."""

from __future__ import annotations

import re
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from kvconform.commands.arguments import above_zero, add_format, add_pool, add_report

if TYPE_CHECKING:
    from kvconform.mutants.hunt import HuntResult
    from kvconform.mutants.mutant import Mutant

HELP = "test the suite itself: plant known bugs and show which test finds each"
KINDS = ("controls", "fakes", "catalogue", "anomalies", "reference", "gpu", "kernels")
"""The kinds of mutants; `kvconform.mutants.kinds` makes them."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--kind", action="append", default=[], choices=KINDS, help="only this kind of mutant (repeatable; all)"
    )
    parser.add_argument("--match", metavar="PATTERN", help="only mutants whose id matches this regular expression")
    parser.add_argument(
        "--every", type=above_zero, default=1, metavar="N", help="try one in N systematic faults (1)"
    )
    parser.add_argument(
        "--argued", action="store_true", help="also try the mutants that are argued to be equivalent"
    )
    parser.add_argument("--list", action="store_true", help="list the mutants and what each does, and stop")
    add_pool(parser, "mutants tried at once (one per core)")
    add_report(parser, "mutants.json, mutants.html and mutants.md")
    add_format(parser)


def main(options: Namespace) -> int:
    """Hunt the chosen mutants; return 1 if one survives without an argument, or a control behaves wrongly."""
    from kvconform.mutants import hunts, matrix
    from kvconform.mutants.hunt import HuntResult
    from kvconform.runner import output
    from kvspec.errors import BadInput

    chosen = selected(options)
    if not chosen:
        raise BadInput("no mutant matches; `kvconform mutants --list` names them all")
    if options.list:
        print("\n".join(f"{m.id}: {m.says}" for m in chosen))
        return 0
    tried = [m for m in chosen if options.argued or not m.equivalent]
    if not options.on:
        hunts.prepare(tried, options.processes)
    began = time.monotonic()
    found, lost = _hunted(tried, options)
    found += [HuntResult(m.id) for m in chosen if m.equivalent and not options.argued]
    made = matrix.made(chosen, found, time.monotonic() - began)
    if options.report:
        page = output.write(made, Path(options.report))
        sys.stderr.write(f"kvconform: report at {page}\n")
    sys.stdout.write(output.text([made], options.format))
    return 3 if lost else int(bool(matrix.wrong(made)))


def _hunted(tried: Sequence[Mutant], options: Namespace) -> tuple[list[HuntResult], bool]:
    """Hunt; give the results, and whether the pool was lost before the last one."""
    from concurrent.futures import BrokenExecutor

    from kvconform.mutants import hunts
    from kvconform.mutants.hunt import HuntResult
    from kvconform.runner.pool import opened

    found = list[HuntResult]()
    try:
        with opened(options.processes, options.on, seconds=hunts.LONGEST_TASK, memory_limit=hunts.MEMORY) as pool:
            found.extend(_told(hunts.all_of(tried, pool), len(tried)))
    except BrokenExecutor as e:
        sys.stderr.write(f"kvconform: {e}; {len(found)} of {len(tried)} mutants were hunted\n")
        return found, True
    return found, False


def selected(options: Namespace) -> list[Mutant]:
    """Select the mutants asked for."""
    from kvconform.mutants import kinds as lists

    kinds = options.kind or lists.KINDS
    every = (m for kind in kinds for m in lists.KINDS[kind]())
    wanted = re.compile(options.match or "")
    chosen = (m for m in every if wanted.search(m.id))
    systematic = count()
    return [m for m in chosen if m.bug_class != "systematic" or next(systematic) % options.every == 0]


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
