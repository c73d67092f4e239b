"""`kvconform mutants`: plants known bugs and shows which test finds each, and how soon."""

from __future__ import annotations

import re
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path

from kvconform.bugs.known_bugs import demand_planted
from kvconform.bugs.mutant import Mutant
from kvconform.bugs.trace_sources import Hints
from kvconform.message import tell
from kvconform.runner.pool import opened
from kvconform.runner.record import output
from kvconform.runner.record.provenance import suite_digest
from kvreports import json_file
from kvspec.errors import BadInput
from kvspec.records.mutants import Matrix
from kvworkshop import hints, hunt_tasks, matrix
from kvworkshop.all_mutants import KINDS
from kvworkshop.hunt import HuntResult


def main(options: Namespace) -> int:
    """Hunt the chosen mutants. Return 1 if one survives without an argument, or a control behaves wrongly. Whatever
    ends the command early, what was hunted is written before it is raised."""
    begun, again = _begun(options), _again(options)  # before mutants are made, which takes a minute
    if options.report and not options.list:
        output.make_folder(Path(options.report))
    chosen = selected(options)
    if not chosen:
        raise BadInput("no mutant matches; `kvconform mutants --list` names them all")
    if options.list:
        print("\n".join(f"{m.id}: {m.says}" for m in chosen))
        return 0
    demand_planted(chosen)
    done = _done(begun, chosen) if begun else set[str]()
    tried = [m for m in chosen if m.id not in done and (options.argued or not m.equivalent)]
    if tried and not options.on:
        hunt_tasks.prepare(tried, options.processes, options.first)
    since = time.monotonic()
    found, ended = _hunted(tried, options, again)
    found += [HuntResult(m.id) for m in chosen if m.equivalent and not options.argued and m.id not in done]
    made = matrix.made(chosen, found, time.monotonic() - since, _suite(), begun)
    write = partial(output.write, made, Path(options.report)) if options.report else None
    unwritten = output.deliver([made], options.format, write)
    if ended:
        raise ended
    return 3 if unwritten else int(bool(matrix.wrong(made)))


def _begun(options: Namespace) -> Matrix | None:
    """Read what an interrupted command wrote into the same folder, if it is to be resumed. Raises BadInput."""
    if not options.resume:
        return None
    if not options.report:
        raise BadInput("--resume goes on with what --report DIR holds: name the folder")
    path = Path(options.report, "mutants.json")
    if not path.exists():
        tell(f"nothing to resume: there is no {path}; all mutants are hunted", "mutants")
        return None
    begun = json_file.load(path, Matrix)
    now = matrix.made([], [], 0, _suite())
    if (begun.spec, begun.suite) != (now.spec, now.suite):
        raise BadInput(f"{path}: made by another spec or suite; leave out --resume, or name another folder")
    return begun


def _again(options: Namespace) -> Mapping[str, Hints]:
    """What an earlier matrix says of where each mutant was found. Raises BadInput."""
    return hints.again(json_file.load(Path(options.again), Matrix)) if options.again else {}


def _suite() -> str:
    """A hash of what a hunt depends on: not of the arguments, which are found after it."""
    return suite_digest(without="equivalents")


def _done(begun: Matrix, chosen: Sequence[Mutant]) -> set[str]:
    """The mutants that need no other hunt: not those with a wrong result, nor those whose argument changed."""
    argued = {m.id: m.equivalent for m in chosen}
    wrong = set(matrix.wrong(begun))
    return {m.id for m in begun.mutants if m.id not in wrong and argued.get(m.id) == m.equivalent}


def _hunted(
    tried: Sequence[Mutant], options: Namespace, again: Mapping[str, Hints]
) -> tuple[list[HuntResult], BaseException | None]:
    """Hunt. Give the results, and what ended the hunt before the last mutant."""
    found = list[HuntResult]()
    try:
        with opened(
            options.processes, options.on, seconds=hunt_tasks.LONGEST_TASK, memory_limit=hunt_tasks.MEMORY
        ) as pool:
            found.extend(_told(hunt_tasks.all_of(tried, pool, options.first, again), tried))
    except (Exception, KeyboardInterrupt) as e:
        rest = "hunts the others" if options.report else "can hunt the others of a command that has --report DIR"
        tell(f"{len(found)} of {len(tried)} mutants were hunted; --resume {rest}", "mutants")
        return found, e
    return found, None


def selected(options: Namespace) -> list[Mutant]:
    """Select the mutants asked for. With `--every N`, one systematic fault in N and one correct control in N."""
    try:
        wanted = re.compile(options.match or "")
    except re.error as e:
        raise BadInput(f"--match: {options.match!r:.60} is no regular expression ({e})") from None
    every = (m for kind in options.kind or KINDS for m in KINDS[kind]())
    chosen = (m for m in every if wanted.search(m.id))
    faults, controls = count(), count()
    numbers = ((m, faults if m.bug_class == "systematic" else controls if m.is_control else None) for m in chosen)
    return [m for m, number in numbers if number is None or next(number) % options.every == 0]


def _told(found: Iterable[HuntResult], tried: Sequence[Mutant]) -> Iterator[HuntResult]:
    """Pass each result on, with progress on standard error. What went wrong is named: a mutant that was not found,
    or a correct control that was."""
    controls = {m.id for m in tried if m.is_control}
    right, last = Counter[str](), 0.0
    for i, one in enumerate(found, 1):
        control = one.id in controls
        wrong = one.killed == control
        right["passed" if control else "found"] += not wrong
        if wrong or time.monotonic() - last > 2 or i == len(tried):
            last = time.monotonic()
            passed = f", {right['passed']} correct caches passed" if controls else ""
            named = f"; {'failed, though correct' if control else 'not found'}: {one.id}" if wrong else ""
            tell(f"[{i}/{len(tried)}] {right['found']} found{passed}{named}", "mutants")
        yield one
