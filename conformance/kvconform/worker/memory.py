"""Memory of a process and its descendants.

It watches resident size: limits on address space break GPU drivers, which reserve far more than they use.
Pages that relatives share are counted for each of them.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
from contextlib import suppress
from time import monotonic

import psutil

LOOK_AGAIN = 1.0
"""Seconds between searches for new relatives: psutil reads every process of the machine, which takes 10 ms."""


YOUNG = 100_000
"""Objects made after which the collector looks for garbage among them; Python's default is 700."""


def collect_seldom() -> None:
    """Look for garbage seldom, and never among the objects there now: that takes a tenth of the time of a trial,
    and finds little."""
    gc.freeze()
    gc.set_threshold(YOUNG)


def family(pid: int) -> list[int]:
    """List the process and its descendants, itself first."""
    return [pid, *(relative.pid for relative in _relatives(pid))]


def peak() -> int:
    """Give the peak resident bytes of this process."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024  # KiB everywhere but there


def resident() -> int:
    """Give the resident bytes of this process now; 0 if they cannot be told."""
    return _resident(psutil.Process())


class Family:
    """A process and its descendants. Their memory is checked often."""

    def __init__(self, pid: int, without_itself: bool = False) -> None:
        self.pid, self._without_itself = pid, without_itself
        self._members: list[psutil.Process] = []
        self._looked = -LOOK_AGAIN

    def resident(self) -> int:
        """Give the resident bytes of all of them now; 0 once they are gone."""
        if monotonic() - self._looked >= LOOK_AGAIN:
            self.look()
        return sum(map(_resident, self._members))

    def look(self) -> None:
        """Search for its members, while its first process lives."""
        itself = [] if self._without_itself else _itself(self.pid)
        self._members, self._looked = [*itself, *_relatives(self.pid)], monotonic()

    def pids(self) -> list[int]:
        """Give the numbers of the members that were seen last."""
        return [member.pid for member in self._members]

    def kill(self) -> None:
        """Kill the members that were seen last."""
        for member in self._members:
            with suppress(psutil.Error):
                member.kill()  # psutil looks whether the pid is still theirs


def _itself(pid: int) -> list[psutil.Process]:
    try:
        return [psutil.Process(pid)]
    except psutil.Error:
        return []


def _relatives(pid: int) -> list[psutil.Process]:
    try:
        return [child for process in _itself(pid) for child in process.children(recursive=True)]
    except psutil.Error:
        return []


def _resident(process: psutil.Process) -> int:
    try:
        return _on_linux(process.pid) if sys.platform == "linux" else int(process.memory_info().rss)
    except (psutil.Error, OSError):
        return 0


PAGE = resource.getpagesize()


def _on_linux(pid: int) -> int:
    """Read the resident bytes of a process, as psutil does in twice the time: each trace asks. Raises
    OSError."""
    file = os.open(f"/proc/{pid}/statm", os.O_RDONLY)
    try:
        return int(os.read(file, 128).split()[1]) * PAGE
    finally:
        os.close(file)
