"""Memory of a process and all that descend from it, read from /proc. Elsewhere nothing is known or watched.

Resident size is what is watched: limits on address space break GPU drivers, which reserve far more than they use.
Pages that relatives share are counted for each of them.
"""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")


def family(pid: int) -> list[int]:
    """The process and its descendants, itself first."""
    found = [pid]
    for member in found:  # grows as it goes
        found += [child for child in _children(member) if child not in found]
    return found


def resident(pid: int) -> int | None:
    """Resident bytes of the family now; None where this cannot be known."""
    sizes = [size for member in family(pid) if (size := _resident(member)) is not None]
    return sum(sizes) if sizes else None


def peak(pid: int) -> int | None:
    """The most bytes that this one process ever held resident; None where this cannot be known."""
    try:
        status = (PROC / str(pid) / "status").read_text()
    except OSError:
        return None
    high = [line.split() for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(high[0][1]) * 1024 if high else None


def _resident(pid: int) -> int | None:
    try:
        return int((PROC / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return None


def _children(pid: int) -> list[int]:
    """Children are listed with the thread that started them."""
    tasks = PROC / str(pid) / "task"
    found: list[int] = []
    try:
        for thread in os.listdir(tasks):
            found += map(int, (tasks / thread / "children").read_text().split())
    except OSError:  # it ended while we looked, or this kernel does not list children
        pass
    return found
