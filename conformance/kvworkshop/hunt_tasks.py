"""The hunts of many mutants, as tasks of a pool. What showed one mutant is tried first on those like it."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import partial

from kvconform.bugs.mutant import Mutant
from kvconform.bugs.trace_sources import SOURCES, Hints
from kvconform.worker.task_process import TaskProcess
from kvconform.worker.tasks import Pool, ProcessDied, completed
from kvspec.errors import CannotRun
from kvworkshop import all_mutants
from kvworkshop.hints import LatestKills
from kvworkshop.hunt import HuntResult, death, hunt
from kvworkshop.systematic import kernels, modules

LONGEST = 240.0
"""Seconds after which a hunt in a process of its own is given up."""

LONGEST_CONTROL = 1800.0
"""The same of a correct cache, which goes through every trace of its chapters: nothing ends its hunt early."""

LONGEST_TASK = LONGEST_CONTROL + 30
"""Seconds after which any hunt is given up: long enough that the limit above acts first and no process is lost."""

MEMORY = 16 << 30
"""Bytes of addresses that the process of a hunt may have: a mutant may allocate without end."""

KNOWN: dict[str, Mutant] = {}
"""Mutants by id: the hunted ones, which forked processes share, or all mutants in any other process."""


def all_of(
    mutants: Sequence[Mutant], pool: Pool, first: bool = False, again: Mapping[str, Hints] | None = None
) -> Iterator[HuntResult]:
    """The result of every hunt, in the order in which they end. `again`: what showed mutants before, by their ids.
    Raises CannotRun, BrokenExecutor."""
    KNOWN.update((m.id, m) for m in mutants)
    latest = LatestKills()
    tasks = ((m.id, latest.hints(m) | (again or {}).get(m.id, {}), first) for m in mutants)
    for (id_, *_), future in completed(pool, hunt_by_id, tasks):
        result = _result(KNOWN[id_], future)
        latest.note(KNOWN[id_], result)
        yield result


def _result(mutant: Mutant, future: Future[HuntResult]) -> HuntResult:
    """The result of a hunt. A mutant that kills its process is found; one that takes too long is not."""
    match future.exception():
        case None:
            return future.result()
        case TimeoutError():
            return _given_up(mutant)
        case ProcessDied() | MemoryError() as e:
            return death(mutant, _ending(e))
        case e if mutant.own_process and not isinstance(e, CannotRun):
            return death(mutant, _ending(e))
        case e:
            raise e  # a hunt catches what a mutant raises: this is not the mutant's


def _ending(e: BaseException) -> str:
    if isinstance(e, ProcessDied):
        return f"its process died with status {e.exitcode}"
    return f"its hunt ended with {type(e).__name__}: {e}"


def _given_up(mutant: Mutant) -> HuntResult:
    """The result of a hunt that took too long: it counts against the suite, although the machine may only have been
    busy."""
    if mutant.is_control:
        return death(mutant, f"it took more than {LONGEST_CONTROL:g} seconds")
    return HuntResult(mutant.id, seconds=LONGEST)


def hunt_by_id(id_: str, hints: Hints, first: bool = False) -> HuntResult:
    """Hunt one mutant, in a process of its own if it may write anywhere. Raises CannotRun."""
    mutant = _known(id_)
    prepare([mutant], first=first)
    return (_in_its_own_process if mutant.own_process else hunt)(mutant, hints, first)


def _known(id_: str) -> Mutant:
    if id_ not in KNOWN:
        KNOWN.update((m.id, m) for kind in all_mutants.KINDS.values() for m in kind())
    return KNOWN[id_]


EARLY = ("examples", "cover")
"""Sources that are read, not drawn, and find nearly every mutant."""


def prepare(mutants: Iterable[Mutant], processes: int | None = None, first: bool = False) -> None:
    """Read, draw and compile what hunts need, so that processes forked later have it. Where the first kill ends a
    hunt, prepare only what is tried early. Raises CannotRun."""
    mutants = list(mutants)
    for mutant in mutants:
        early = mutant.stop_at_first_kill or (first and not mutant.is_control)
        for chapter in mutant.chapters[:1] if early else mutant.chapters:
            for source in EARLY if early else SOURCES:
                SOURCES[source](chapter)
    kernels.compiled(mutants, processes)
    modules.prepared(mutants)


def _in_its_own_process(mutant: Mutant, hints: Hints, first: bool) -> HuntResult:
    """Hunt it in a copy of this process. Raises TimeoutError, and ProcessDied."""
    longest = LONGEST_CONTROL if mutant.is_control else LONGEST
    with closing(TaskProcess(longest, 0, "fork")) as process:
        result = process.do(partial(_silently, mutant.id, hints, first))
    assert isinstance(result, HuntResult), "a mutant that wrote anywhere may send anything"
    return result


def _silently(id_: str, hints: Hints, first: bool) -> HuntResult:
    """Hunt it with standard error closed: C and Python both write there when memory is broken."""
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    return hunt(KNOWN[id_], hints, first)
