"""The memory that a profile may take: one budget for the adapter, its peers and the limits."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import psutil

from kvspec.contract.timing import BEYOND

PART_OF_FREE = 4
"""All parties together take at most one part in this many of the memory that is free when the profile begins."""

BESIDE = 2
"""Parties beside the adapter and its peers: the blocks that limits stream over, and the arrays that peers share."""

PART_OF_DEVICE = 8
"""On a GPU each party may hold one part in this many of the device's memory."""

LEAST = 256 << 20
"""Bytes that each party rotates through on a device with a small last-level cache."""

CGROUP = Path("/sys/fs/cgroup")
"""Where Linux tells how much memory a container may take."""


class Budget(NamedTuple):
    """Bytes that each party of a profile may take."""

    rotation: int
    """Bytes of rows that a party rotates through, where its share has room for them."""
    share: int
    """The most bytes that a party may hold."""

    def rotated(self, held: int) -> int:
        """Give the bytes to rotate through in a case whose instances hold `held` bytes each."""
        return max(1, min(self.rotation, self.share - held))


def budget(asked: int | None, cache: int, peers: int, device: int | None = None, free: int | None = None) -> Budget:
    """Share the memory out.

    `asked` is how many bytes a party shall rotate through; by default so many that the last-level cache of `cache`
    bytes holds a small part of them. `device` is the memory of a GPU, None where the device uses the host's.
    """
    free = (free_memory() if free is None else free) // PART_OF_FREE
    share = free // (1 + peers + BESIDE) if device is None else min(device // PART_OF_DEVICE, free)
    return Budget(min(asked or max(LEAST, 2 * BEYOND * cache), share), share)


def free_memory() -> int:
    """Give the bytes that are free on the machine, or in its container if these are fewer."""
    return min([psutil.virtual_memory().available, *_free_in_container()])


def _free_in_container() -> list[int]:
    """Give what the limit of the container leaves (cgroup v2); nothing where there is no limit. Pages of files
    count as free, because the system drops them first."""
    try:
        most, taken = (int((CGROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        counts = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # no cgroup v2, or a limit of "max", which is none
        return []
    return [max(0, most - taken + int(counts.get("inactive_file", 0)))]
