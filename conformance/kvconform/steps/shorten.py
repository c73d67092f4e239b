"""Cuts a log to what breaks a clause: the requests, and of these the events, without which it is not broken.
What is left is told in fewer events, as long as that breaks it as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

from kvconform.steps.broken import Broken
from kvconform.steps.judge import Judge
from kvconform.steps.log_file import Header, Line, opened
from kvconform.steps.retell import Atom, alone, at_once, names, retold
from kvspec.errors import BadInput

MOST_LINES, MOST_ATOMS, FEW = 20_000, 4_000, 100
"""Events that are kept to be cut; those that are left out one by one; and those that are told anew one by one."""

OF_ALL = ("STEP-30",)
"""Clauses that count all pages while no request has any: no event of a request is needed to break them."""

OF_ONE = ("add", "finish", "free", "fork", "swap")
"""Events that are of one request each."""

Breaks = Callable[[list[Atom]], bool]
"""Tells of events whether they break a clause as a log does."""


def shortened(path: Path, broken: Broken) -> list[Line]:
    """Give the events that are needed to break the clause as the log does, in their order. Give none if the log is
    too long to be cut, or the clause is about all requests."""
    if broken.clause in OF_ALL:
        return []
    for only in (set(broken.requests), None):
        with opened(path) as (header, lines):
            atoms = _atoms(lines, only, broken.line)
        breaks = _breaks(header, broken)
        others = reduce(alone, broken.requests[1:], atoms or [])
        for told in (atoms or [], others):
            if breaks(told):
                return _lines(_cut(told, breaks))
    return []


def _atoms(lines: Iterable[Line], only: set[str] | None, last: int) -> list[Atom] | None:
    """Take events apart, up to a line: those of some requests, or of all. None if there are too many."""
    found = list[Atom]()
    for line in lines:
        if line.number > last:
            break
        if line.verb != "left" or line.number == last:
            found += [(one, name) for one, name in _apart(line) if only is None or not name or name in only]
        if len(found) > MOST_LINES:
            return None
    return found


def _apart(line: Line) -> Iterator[Atom]:
    """Take an event apart: what it says of each request."""
    told = line.event[line.verb]
    if line.verb in ("step", "sampled"):
        for name, given in told.items():
            yield Line(line.number, line.verb, {line.verb: {name: given}}, line.step), name
    else:
        yield line, str(line.event.get("as", told)) if line.verb in OF_ONE else ""


def _lines(atoms: Iterable[Atom]) -> list[Line]:
    """Put events together again."""
    made = list[Line]()
    for line, _ in atoms:
        if made and made[-1].number == line.number and line.verb in ("step", "sampled"):
            both: Any = {**made[-1].event[line.verb], **line.event[line.verb]}
            made[-1] = Line(line.number, line.verb, {line.verb: both}, line.step)
        else:
            made.append(line)
    return made


def _breaks(header: Header, broken: Broken) -> Breaks:
    """Tell of events whether they break a clause as a log does: in the same line, by the same requests."""

    def how(found: Broken) -> tuple[str, int, tuple[str, ...]]:
        return found.clause, found.line, found.requests

    def breaks(atoms: list[Atom]) -> bool:
        try:
            found = Judge(header).judge(_lines(atoms))
        except BadInput:
            return False
        return found is not None and how(found) == how(broken)

    return breaks


def _cut(atoms: list[Atom], breaks: Breaks) -> list[Atom]:
    """Leave out requests, then single events, and tell the rest in fewer, as long as it breaks the clause."""
    for name in names(atoms):
        ways = ([atom for atom in atoms if atom[1] != name], alone(atoms, name))
        atoms = next(filter(breaks, ways), atoms)
    for name in names(atoms):
        less = [atom for atom in atoms if atom[1] != name]
        atoms = less if breaks(less) else atoms
    if len(atoms) > MOST_ATOMS:
        return atoms
    for name in names(atoms):
        told = (at_once(atoms, name, late) for late in (False, True))
        atoms = next(filter(breaks, told), atoms)
    atoms = _without_single(atoms, breaks)
    while len(atoms) <= FEW:
        less = next(filter(breaks, retold(atoms)), atoms)
        if less is atoms:
            break
        atoms = _without_single(less, breaks)
    return atoms


def _without_single(atoms: list[Atom], breaks: Breaks) -> list[Atom]:
    """Leave out events, half of them at once at first and one at last, as long as the rest breaks the clause."""
    size = len(atoms) // 2
    while size:
        for at in range(len(atoms) - size, -size, -size):
            less = atoms[: max(at, 0)] + atoms[at + size :]
            atoms = less if breaks(less) else atoms
        size //= 2
    return atoms
