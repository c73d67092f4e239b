"""Which rows of a trace are alive, and at which position, so that a drawing can show what was rolled back.

A record has the letters of rows, and offsets; this module works out the position of each row from the operations.
Where it cannot be certain, it claims nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from kvspec.records.run import Observation, StepRecord
from kvspec.rows.serials import serial

Alive = list[str] | None
"""The live row at each position; None where it is not known."""

KNOWN = (
    *("open", "append", "view", "ask", "rewind", "free", "scribble", "mask"),
    *("snapshot", "restore", "split", "merge", "close", "plan", "fit"),
)
"""Operations with a known effect on the rows of a cache; not those of stores, buffers and rounds."""

DEATHS = {"rewind": "rolled back", "restore": "rolled back", "free": "freed"}
"""What an operation that succeeds makes of rows. A row of an append that did not succeed was refused."""

LONGEST = 4096
"""Most positions that are worked out."""


def fates(steps: Sequence[StepRecord]) -> list[Alive]:
    """After each step, the live rows of the cache that it changed."""
    ledger = _Ledger()
    return [ledger.after(step) for step in steps]


def deaths(steps: Sequence[StepRecord]) -> str:
    """How rows of this trace died: `rolled back`, `rolled back or refused`, ...; `not held` where none is known."""
    ways = dict.fromkeys(way for step in steps if (way := _death(step)))
    return " or ".join(ways) or "not held"


def _death(step: StepRecord) -> str:
    words = _words(step.do)[1]
    do = words[0] if words else ""
    if step.expected.result != "ok":
        return "refused" if do == "append" else ""
    return DEATHS.get(do, "")


class _Ledger:
    def __init__(self) -> None:
        self.caches: dict[str, Alive] = {}
        self.snapshots: dict[str, Alive] = {}
        self.newest = -1

    def after(self, step: StepRecord) -> Alive:
        cache, words = _words(step.do)
        before = self.caches.get(cache, [])
        seen, rows = step.expected, before
        if seen.result == "ok":
            rows = self._done(words, before, seen)
        self.newest = max([self.newest, *map(_serial, set(_rows(seen)))])
        offset = seen.get("offset")
        if rows is not None and (len(rows) > LONGEST or (offset is not None and len(rows) != offset)):
            rows = None
        self.caches[cache] = rows
        return None if rows is None else list(rows)

    def _done(self, words: list[str], before: Alive, seen: Observation) -> Alive:
        do, offset = words[0] if words else "", seen.get("offset")
        if do not in KNOWN or (do == "append" and offset is None):
            return None
        if do in ("open", "free"):
            return []
        if do == "append":
            new = {r for r in set(_rows(seen)) if _serial(r) > self.newest}
            return None if before is None else before + sorted(new, key=_serial)
        if do == "snapshot" and len(words) > 1:
            self.snapshots[words[1]] = before if len(words) == 2 else None
        if do in ("split", "merge"):
            self.snapshots.update(dict.fromkeys(words[1:]))
        if do == "restore":
            before = self.snapshots.get(words[1]) if len(words) > 1 else None
        return before if before is None or offset is None else before[:offset]


def _words(do: str) -> tuple[str, list[str]]:
    words = do.split()
    if words and words[0].endswith(":"):
        return words[0][:-1], words[1:]
    return (words[1] if words[:1] == ["open"] and len(words) > 1 else "A"), words


def _rows(seen: Observation) -> Iterable[str]:
    return chain(seen.slots or (), seen.history or (), *(seen.queries or ()))


def _serial(name: str) -> int:
    try:
        return serial(name)
    except ValueError:
        return -1
