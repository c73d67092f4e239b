"""Growing caches, rings and their snapshots."""

from __future__ import annotations

from typing import Any

from kvprofile.case import Case
from kvprofile.operation import Job, Work
from kvprofile.subject import Subject
from kvspec import traffic
from kvspec.geometry import Config

STEP = 256
"""Rows by which storage grows."""

BEYOND = 100
"""Rows by which a ring is past its window, so that its oldest row is in the middle."""


def roomy(case: Case) -> Config:
    """Make a growing cache that holds the context, with room for as much again."""
    return case.config(step=2 * case.context, batch=case.batch)


def filled(subject: Subject, count: int) -> list[Any]:
    """Make growing caches that hold the context."""
    rows = subject.rows(subject.case.context)
    caches = [subject.open("growing") for _ in range(count)]
    for cache in caches:
        cache.append(*rows)
    return caches


def append(subject: Subject) -> Job:
    """Append rows behind the context, without growing."""
    case = subject.case
    caches, sources = filled(subject, subject.turns(case.context)), subject.several(subject.shapes(case.rows))

    def do(i: int) -> None:
        caches[i % len(caches)].append(*sources[i % len(sources)])

    def reset() -> None:
        for cache in caches:
            cache.rewind(case.context)

    return Job(do, len(caches) * (case.context // case.rows), reset)


def grow(subject: Subject) -> Job:
    """Append one row more than fits: the context moves to longer storage."""
    case = subject.case
    caches, row, rows = filled(subject, subject.turns(case.context, 8)), subject.rows(1), subject.rows(case.context)

    def reset() -> None:
        for cache in caches:
            cache.free()
            cache.append(*rows)

    return Job(lambda i: caches[i].append(*row), len(caches), reset)


def view(subject: Subject) -> Job:
    """Read all rows to the host."""
    caches = filled(subject, subject.turns(subject.case.context))
    return Job(lambda i: caches[i % len(caches)].read("view"))


def rewind(subject: Subject) -> Job:
    """Rewind one row."""
    case, (cache,) = subject.case, filled(subject, 1)
    rows = subject.rows(case.context)
    return Job(lambda i: cache.rewind(case.context - 1 - i), case.context - 1, lambda: cache.append(*rows))


def snapshot(subject: Subject) -> Job:
    """Save the whole context and close the snapshot."""
    caches = filled(subject, subject.turns(subject.case.context))
    return Job(lambda i: caches[i % len(caches)].snapshot(0).close())


def restore(subject: Subject) -> Job:
    """Restore the whole context."""
    caches = filled(subject, subject.turns(2 * subject.case.context))
    saved = [cache.snapshot(0) for cache in caches]
    return Job(lambda i: caches[i % len(caches)].restore(saved[i % len(saved)], subject.case.context))


def wrapped(subject: Subject) -> list[Any]:
    """Make rings past their windows."""
    case, row = subject.case, subject.rows(1)
    rows = subject.rows(case.context)
    rings = [subject.open("ring") for _ in range(subject.turns(case.context))]
    for ring in rings:
        ring.append(*rows)
        for _ in range(BEYOND):
            ring.append(*row)
    return rings


def turn(subject: Subject) -> Job:
    """Append to full rings: one row takes the slot of the oldest, several go behind the newest W - 1.

    A ring with spare room moves its rows only now and then. So each ring begins one chunk later than the one
    before: then they do not all move in the same turn. All begin behind a whole window of chunks, since the first
    write to new memory takes several times as long as later ones.
    """
    rings, sources = wrapped(subject), subject.several(subject.shapes(subject.case.rows))
    for i, ring in enumerate(rings if subject.case.rows > 1 else ()):
        for _ in range(subject.case.context // subject.case.rows + i):
            ring.append(*sources[0])
    return Job(lambda i: rings[i % len(rings)].append(*sources[i % len(sources)]))


def straighten(subject: Subject) -> Job:
    """Read the newest W - 1 rows in position order to the host."""
    rings = wrapped(subject)
    return Job(lambda i: rings[i % len(rings)].read("view"))


def _stepped(case: Case) -> Config:
    return case.config(step=STEP)


def _ring(case: Case) -> Config:
    return case.config(window=case.context, step=STEP, batch=case.batch)


def _context(case: Case) -> int:
    return case.context * case.config(batch=case.batch).row_bytes


def _appended(case: Case) -> traffic.Traffic:
    return traffic.appended(roomy(case), case.rows)


def _moved(case: Case) -> traffic.Traffic:
    return traffic.moved(case.config(batch=case.batch), case.context)


def _viewed(case: Case) -> traffic.Traffic:
    return traffic.downloaded(case.config(batch=case.batch), case.context)


WORK = {
    "append": Work(roomy, _appended, lambda case: 2 * _context(case), append),
    "grow": Work(_stepped, lambda case: traffic.grown(case.config(), case.context, 1), _context, grow),
    "view": Work(roomy, _viewed, _context, view),
    "rewind": Work(roomy, lambda case: traffic.NOTHING, _context, rewind),
    "snapshot": Work(roomy, _moved, _context, snapshot),
    "restore": Work(roomy, _moved, _context, restore),
    "ring append": Work(_ring, lambda case: traffic.appended(_ring(case), case.rows), _context, turn),
    "ring view": Work(_ring, lambda case: traffic.downloaded(_ring(case), case.context - 1), _context, straighten),
}
