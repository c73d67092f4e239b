"""The queues of an OpenCL device: its own, and on a CPU one whose commands run on the calling thread.

Waking the threads of a CPU takes longer than copying a few rows (PoCL, two cores: 30 to 50 us against 4 for a row,
15 for 256 KiB). So while nothing else runs, the calling thread does a small command itself, at once. PoCL has a
device for that, `basic`, beside the one with threads, `pthread`; both have the same memory.
"""

from __future__ import annotations

from typing import Any

from kvgpu.runtime import Block, Work

SMALL = 1 << 14
"""Words of 16 bytes that one thread copies in less time than it takes to wake the others."""

SMALL_BLOCKS = 1 << 16
"""Bytes of all blocks of an attention that is small."""

INNER = {"place": 32, "step": 32}
"""Kernels whose work item takes all heads of a row: the most heads of each."""

BY_BLOCKS = ("attend", "join", "scores")
"""Prefixes of the kernels that size their work themselves, not by `Work`."""


class Queues:
    """Commands take effect in the order of the calls, whatever queue they go to. The calling thread does none
    while the device is busy. The device gets none before the calling thread is done. `own` is the device's queue.
    The caller sets `newest` to the event of the newest command."""

    def __init__(self, cl: Any, context: Any, device: Any, caller: Any = None) -> None:
        profiled = cl.command_queue_properties.PROFILING_ENABLE
        self.own = cl.CommandQueue(context, device, properties=profiled)
        self._caller = None if caller is None else cl.CommandQueue(context, caller, properties=profiled)
        self._complete = cl.command_execution_status.COMPLETE
        self.newest: Any = None

    def launching(self, small: bool) -> Any:
        """Give the queue for a launch."""
        return self._caller if small and self.idle() else self.streaming()

    def streaming(self) -> Any:
        """Give the queue for a command that is large or unknown."""
        if self._caller is not None:
            self._caller.finish()  # PoCL has done everything by now; OpenCL does not promise that
        return self.own

    def waiting(self) -> Any:
        """Give the queue for a copy that the caller waits for."""
        if self._caller is None:
            return self.own
        self.own.finish()
        return self._caller

    def idle(self) -> bool:
        """Tell whether the calling thread may do work itself: the device has that, and nothing runs."""
        if self.newest is not None and self.newest.command_execution_status == self._complete:
            self.newest = None
        return self.newest is None and self._caller is not None

    def finish(self) -> None:
        """Wait until everything is done."""
        self.streaming().finish()


def small(words: int | None, args: tuple[Block | int, ...]) -> bool:
    """Tell whether a launch is small, by the words that it moves, or by its blocks."""
    if words is not None:
        return words <= SMALL
    return sum(a.nbytes for a in args if isinstance(a, Block)) <= SMALL_BLOCKS


def words(kernel: str, work: Work) -> int | None:
    """Give the words that a launch moves at most; None where its blocks must tell."""
    if kernel.startswith(BY_BLOCKS):
        return None
    return work.words * work.rows * work.heads * work.parts * INNER.get(kernel.rstrip("0123456789"), 1)
