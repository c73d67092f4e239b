"""Optional methods of an adapter, with which its device's own clock times it in a profile.

A profile looks for the methods of `Timed`. Without them, the host's clock times the adapter, against no limit.
`HostTimed` has all of them for an adapter whose device is the host.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from kvspec.traffic import LIMITS, Limit, Traffic

Work = Callable[[], None]


class Streams(NamedTuple):
    """The plainest work over memory. Each reads, writes or copies `nbytes` once, far more than caches hold.

    `download` copies `downloaded` bytes to page-locked memory of the host; None where the device's memory is the
    host's."""

    read: Work
    write: Work
    copy: Work
    nbytes: int
    words: str
    """What they are, for the record: which kernels, in which shape."""
    download: Work | None = None
    downloaded: int = 0
    over: Callable[[int], Streams] | None = None
    """Gives the same work over about this many bytes of the same memory, so that a limit is measured with the
    footprint of a case. None where the work has one size."""

    @property
    def limits(self) -> list[Limit]:
        """List the limits that the device has."""
        return [name for name in LIMITS if getattr(self, name) is not None]

    def limit(self, moved: Traffic) -> Limit | None:
        """Name the limit to hold this traffic against; None if there is none."""
        return "copy" if moved.limit == "download" and self.download is None else moved.limit

    def moved(self, limit: str) -> int:
        """Count the bytes that one of them moves: a copy and a download read and write."""
        both = 2 if limit in ("copy", "download") else 1
        return both * (self.downloaded if limit == "download" else self.nbytes)


class Timed(Protocol):
    """Methods with which a profile times an adapter by its device's clock."""

    def clock(self) -> str:
        """Say what `elapsed` measures."""

    def elapsed(self, work: Work) -> float:
        """Do the work, wait for the device, and give the seconds the device was busy with it."""

    @property
    def gpu(self) -> bool:
        """Tell whether the device is a GPU."""

    @property
    def cache_bytes(self) -> int:
        """Give the bytes of the device's last-level cache; 0 if unknown."""

    def synchronise(self) -> None:
        """Wait until the device has done everything."""

    def streams(self, most: int) -> Streams:
        """Give plain reads, writes and copies, by which the limits of this device are measured, over two arrays of
        at most this many bytes each."""

    def give_back(self) -> None:
        """Give memory that was freed and is kept for later back to the device. A profile calls it after each case,
        so that the next party may take it. This method and the next two may be missing."""

    def clock_of(self, stream: int) -> Callable[[Work], float] | None:
        """Give `elapsed` for a stream of another library, by its handle: so peers get the same clock. None if this
        clock times no other streams."""

    def state(self) -> Mapping[str, str]:
        """Describe the device as it is now, for the record: its clocks, its temperature, what slows it down."""


CACHES, UNITS = Path("/sys/devices/system/cpu/cpu0/cache"), {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
"""The folder where Linux describes a processor's caches, and how it writes sizes."""

HOST_BYTES = 256 << 20
"""Least bytes of each array that is streamed on a CPU: several times the largest cache of most."""

BEYOND = 4
"""Each array is this many times as large as the last-level cache, where there is memory for it."""


def host_cache() -> int:
    """Bytes of the host's last-level cache according to Linux; 0 if Linux does not tell."""
    sizes = [path.read_text().strip() for path in CACHES.glob("index*/size")]
    return max((int(size[:-1]) * UNITS[size[-1]] for size in sizes if size[-1:] in UNITS), default=0)


def host_stream() -> int:
    """Bytes of each array to stream on a CPU, if nothing else limits them."""
    return max(HOST_BYTES, BEYOND * host_cache())


class HostTimed:
    """The device is the host: its clock is the host's, its limits are numpy's."""

    gpu = False

    @property
    def cache_bytes(self) -> int:
        """That of the host."""
        return host_cache()

    def clock(self) -> str:
        """The host's."""
        return "wall time: the device is the host"

    def elapsed(self, work: Work) -> float:
        """Seconds that the work took."""
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    def synchronise(self) -> None:
        """Nothing is ever under way."""

    def streams(self, most: int) -> Streams:
        """A reduction, a fill and a copy over whole arrays."""
        words = max(1, min(host_stream(), most) // 8)
        return _on_the_host(np.arange(words), np.ones(words, np.int64))


def _on_the_host(source: np.ndarray[Any, Any], target: np.ndarray[Any, Any]) -> Streams:
    def read() -> None:
        np.bitwise_xor.reduce(source)

    def over(nbytes: int) -> Streams:
        words = max(1, nbytes // 8)
        return _on_the_host(source[:words], target[:words])

    words = f"numpy {np.__version__}: bitwise_xor.reduce, fill, copyto"
    return Streams(read, lambda: target.fill(7), lambda: np.copyto(target, source), source.nbytes, words, over=over)
