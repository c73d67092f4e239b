"""How long a process waited for a core. A deadline counts what an engine does, not what others do.

Linux counts for each thread the time in which it could run and did not. Other systems do not tell: there nothing is
known to have waited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from time import monotonic

NANOSECOND = 1e-9

MOST = 10
"""Deadlines that an answer may take with all waits. An engine that computes for ever waits for a core, too."""


class Deadline:
    """So many seconds from now on, in which the processes do not wait for a core."""

    def __init__(self, seconds: float, pids: Callable[[], list[int]]) -> None:
        self._seconds, self._pids, self._until = seconds, pids, monotonic() + seconds
        self._waits: Waits | None = None

    def left(self) -> float:
        """Give the seconds until it may be over."""
        return self._until - monotonic()

    def is_over(self) -> bool:
        """Tell whether it is over. Ask each time that there is no answer yet: waits count from the first time on,
        so that a quick answer costs nothing here."""
        self._waits = self._waits or Waits(self._pids())
        if self.left() <= 0:
            self._until += self._waits.anew(within=(MOST - 1) * self._seconds)
        return self.left() <= 0


class Waits:
    """How long the threads of some processes waited for a core since this was made. Threads that began later count
    from their beginning on."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids, self._told = list(pids), 0.0
        self._before = self._read()

    def anew(self, within: float) -> float:
        """Give the seconds since the last call, at most so many in all calls."""
        before, self._told = self._told, max(self._told, min(self.seconds(), within))
        return self._told - before

    def seconds(self) -> float:
        """Give the seconds of the thread that waited longest: an engine's threads work beside each other."""
        return max((now - self._before.get(thread, 0.0) for thread, now in self._read().items()), default=0.0)

    def _read(self) -> dict[str, float]:
        """Give the seconds that each thread has waited since it began."""
        found = dict[str, float]()
        for pid in self._pids:
            with suppress(OSError):
                for thread in Path(f"/proc/{pid}/task").iterdir():
                    found[thread.name] = waited(thread)
        return found


def waited(thread: Path) -> float:
    """Give the seconds that a thread has waited since it began; 0 if they cannot be told."""
    try:
        return int((thread / "schedstat").read_text().split()[1]) * NANOSECOND
    except (OSError, ValueError, IndexError):
        return 0.0
