"""Cuts a log to what breaks a clause: the requests, and of these the events, without which it is not broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from kvconform.steps.broken import Broken
from kvconform.steps.judge import Judge
from kvconform.steps.log_file import Header, Line, opened
from kvspec.errors import BadInput

MOST_LINES, MOST_ATOMS = 20_000, 4_000
"""Events that are kept to be cut, and those that are left out one by one."""

OF_ALL = ("STEP-30", "STEP-31")
"""Clauses that are about all requests: a part of a log does not show them."""

OF_ONE = ("add", "finish", "free", "fork", "swap")
"""Events that are of one request each."""

Atom = tuple[Line, str]
"""An event of one request, with its name; what is of none has the name `""`."""


def shortened(path: Path, broken: Broken) -> list[Line]:
    """Give the events that are needed to break the clause as the log does, in their order; none if it is too long
    to be cut, or the clause is about all requests."""
    if broken.clause in OF_ALL:
        return []
    for names in (set(broken.requests), None):
        with opened(path) as (header, lines):
            atoms = _atoms(lines, names, broken.line)
        if atoms is not None and _breaks(header, broken)(atoms):
            return _lines(_cut(atoms, _breaks(header, broken)))
    return []


def _atoms(lines: Iterable[Line], names: set[str] | None, last: int) -> list[Atom] | None:
    """Take events apart, up to a line: those of the requests named, or of all. None if there are too many."""
    found = list[Atom]()
    for line in lines:
        if line.number > last:
            break
        found += [(one, name) for one, name in _apart(line) if names is None or not name or name in names]
        if len(found) > MOST_LINES:
            return None
    return found


def _apart(line: Line) -> Iterator[Atom]:
    """Take an event apart: what it says of each request."""
    told = line.event[line.verb]
    if line.verb in ("step", "sampled"):
        for name, given in told.items():
            yield Line(line.number, line.verb, {line.verb: {name: given}}, line.step), name
    elif line.verb != "left":
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


def _breaks(header: Header, broken: Broken) -> Callable[[list[Atom]], bool]:
    """Tell of events whether they break a clause as a log does: in the same line."""

    def breaks(atoms: list[Atom]) -> bool:
        try:
            found = Judge(header).judge(_lines(atoms))
        except BadInput:
            return False
        return found is not None and (found.clause, found.line) == (broken.clause, broken.line)

    return breaks


def _cut(atoms: list[Atom], breaks: Callable[[list[Atom]], bool]) -> list[Atom]:
    """Leave out requests, then single events, as long as the rest breaks the clause."""
    for name in dict.fromkeys(name for _, name in atoms):
        less = [atom for atom in atoms if atom[1] != name]
        atoms = less if breaks(less) else atoms
    size = len(atoms) // 2 if len(atoms) <= MOST_ATOMS else 0
    while size:
        for at in range(len(atoms) - size, -size, -size):
            less = atoms[: max(at, 0)] + atoms[at + size :]
            atoms = less if breaks(less) else atoms
        size //= 2
    return atoms
