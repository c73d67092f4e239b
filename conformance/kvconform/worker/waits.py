"""How long a process waited for a core. A deadline counts what an engine does, not what others do.

Linux counts for each thread the time in which it could run and did not. Other systems do not tell: there nothing is
known to have waited.
"""

from __future__ import annotations

from collections.abc import Callable
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
        self._waits = self._waits or Waits(self._pids)
        self._waits.look()
        if self.left() <= 0:
            self._until += self._waits.anew(within=(MOST - 1) * self._seconds)
        return self.left() <= 0


class Waits:
    """How long an engine waited for a core since this was made: its processes, and those that it starts, such as a
    compiler. `pids` gives those that there are. Each look adds the wait of the thread that waited longest since the
    last one: threads work beside each other, and processes one after another. A thread that began since counts from
    its beginning on."""

    def __init__(self, pids: Callable[[], list[int]]) -> None:
        self._pids, self._told, self.seconds = pids, 0.0, 0.0
        self._before = self._read()

    def look(self) -> None:
        """Add what was waited since the last look."""
        now = self._read()
        self.seconds += max((wait - self._before.get(thread, 0.0) for thread, wait in now.items()), default=0.0)
        self._before = now

    def anew(self, within: float) -> float:
        """Give the seconds since the last call, at most so many in all calls."""
        before, self._told = self._told, max(self._told, min(self.seconds, within))
        return self._told - before

    def _read(self) -> dict[str, float]:
        """Give the seconds that each thread has waited since it began."""
        found = dict[str, float]()
        for pid in self._pids():
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
