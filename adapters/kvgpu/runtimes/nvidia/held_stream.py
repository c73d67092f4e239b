"""Times the work of a stream of an NVIDIA GPU, without the gaps in which the stream waits for the host.

A kernel holds the stream until the host has queued the work. So what lies between two events runs back to back. The
blocking kernel of NVIDIA's nvbench does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kvgpu import kernels
from kvgpu.runtime import Work

MOST_CYCLES = 1 << 29
"""A stream is held no longer, about 0.3 s: the host may wait for the stream in a call that nobody announced."""

MOST_QUEUED = 256
"""Launches for which a stream is held: a driver has room for about a thousand, and then the host waits."""

KERNELS = {"hold": 1, "nothing": 1}
ONE = Work(1, 1)
GO = np.dtype(np.uint32)

Launch = Callable[[str, Work, tuple[int, ...], int], None]


def text() -> str:
    """Give the program text of `KERNELS`."""
    return kernels.text("prelude_cuda.h") + kernels.text("hold.cu")


class HeldStream:
    """Measures work on a stream. `launch` starts a kernel of `KERNELS` on a stream, which it gets as a number.

    `go` is in memory of the host that the device reads as well.
    """

    def __init__(self, cuda: Any, launch: Launch) -> None:
        self._cuda, self._launch = cuda, launch
        self._memory = cuda.alloc_pinned_memory(GO.itemsize)
        self._go = np.frombuffer(self._memory, GO, 1)
        self._events = cuda.Event(), cuda.Event()
        self._stream: Any = None
        self._queued = 0

    def elapsed(self, work: Callable[[], None], stream: Any) -> float:
        """Do the work, wait for the stream, and give the seconds it was busy."""
        self._stream, self._seconds = stream, 0.0
        self._hold()
        try:
            work()
        finally:
            self._finish()
            self._stream = None
        return self._seconds

    def queued(self) -> None:
        """Note that something was launched. When there are many, they are done before the stream is held anew."""
        if self._stream is not None:
            self._queued += 1
            if self._queued == MOST_QUEUED:
                self._finish()
                self._hold()

    def release(self) -> None:
        """Let the stream go on, if it is held: the host is about to wait for it."""
        self._go[0] = 1

    def _hold(self) -> None:
        self._go[0], self._queued = 0, 0
        self._launch("hold", ONE, (self._memory.ptr, MOST_CYCLES), self._stream.ptr)
        self._events[0].record(self._stream)

    def _finish(self) -> None:
        self._events[1].record(self._stream)
        self.release()
        self._events[1].synchronize()
        self._seconds += float(self._cuda.get_elapsed_time(*self._events)) * 1e-3

    def least(self, stream: Any, tries: int = 20) -> float:
        """Give the least seconds that the launch of an empty kernel is measured to take."""

        def nothing() -> None:
            self._launch("nothing", ONE, (self._memory.ptr,), stream.ptr)

        return min(self.elapsed(nothing, stream) for _ in range(tries))
