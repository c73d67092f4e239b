"""Clauses that an operation exercises only because of what was done before. Examples are positions that are given
out again, and snapshots that were written over, restored already or restored elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from kvspec.operations.table import OPEN, OPERATIONS, TAKES_ROWS, Operation

POSITIONS_AGAIN, IMMUTABLE, RESTORED_AGAIN = "ROPE-21", "SNAP-3", "SNAP-4"

BACK = ("rewind", "rollback", "free", "reset", "restore", "truncate", "setlength")
"""Operations after which positions are given out again."""

WRITE = (*TAKES_ROWS, "restore", "commit", "choose")
"""Operations that may write over rows that a snapshot has."""


@dataclass
class _Saved:
    """A snapshot: where it ends, the caches that have its rows, and what happened to it."""

    stop: float
    caches: set[str]
    written: bool = False
    """Whether one of these caches wrote over its rows."""
    restored: bool = False


@dataclass
class Earlier:
    """What was done before in a trace."""

    back: set[str] = field(default_factory=set)
    """Caches that went back to an earlier position."""
    saved: dict[str, _Saved] = field(default_factory=dict)

    def not_exercised(self, op: Operation, name: str) -> set[str]:
        """The clauses of these that an operation on a cache does not exercise."""
        saved = self._used(op)[:1]
        holds = {
            POSITIONS_AGAIN: name in self.back,
            IMMUTABLE: all(s.written for s in saved),
            RESTORED_AGAIN: all(s.restored or name not in s.caches for s in saved),
        }
        return {clause for clause, exercised in holds.items() if not exercised}

    def note(self, op: Operation, name: str, offset: int | None, windowed: bool) -> None:
        """Note an operation that was done on a cache, which stood at an offset before."""
        if op["op"] == OPEN.name:
            self.back.discard(name)
        if op["op"] in WRITE:
            self._write(name, offset, windowed)
        if op["op"] in BACK:
            self.back.add(name)
        made = [op[a] for a in OPERATIONS[op["op"]].makes if op.get(a)]
        for saved in () if made else self._used(op):
            saved.restored = True
            saved.caches.add(name)
        self.saved |= dict.fromkeys(made, self._made(op, name, offset))

    def _used(self, op: Operation) -> list[_Saved]:
        """What is known of the snapshots that an operation uses."""
        return [self.saved[op[a]] for a in OPERATIONS[op["op"]].uses if op.get(a) in self.saved]

    def _made(self, op: Operation, name: str, offset: int | None) -> _Saved:
        """What is known of a snapshot that an operation makes: of others, what happened to these."""
        parts = self._used(op)
        if not parts:
            return _Saved(inf if offset is None else offset, {name})
        caches = set[str]().union(*(part.caches for part in parts))
        stop = max(part.stop for part in parts)
        return _Saved(stop, caches, any(p.written for p in parts), any(p.restored for p in parts))

    def _write(self, name: str, offset: int | None, windowed: bool) -> None:
        """Note that a cache writes behind an offset. In a window any row may be written over."""
        for saved in self.saved.values():
            over = windowed or offset is None or offset < saved.stop
            saved.written |= over and name in saved.caches
