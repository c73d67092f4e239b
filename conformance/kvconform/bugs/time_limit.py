"""A time limit for code that may never return, in the same process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from kvconform.worker.signals import handling

WAITS = 12
"""The clock may run this many times as long as the processor, on a busy machine or while waiting for something."""


class Hang(BaseException):
    """Something took too long. Not an Exception, so that no adapter catches it."""


@contextmanager
def time_limit(seconds: float, process_seconds: float = 0.0) -> Iterator[None]:
    """Raise Hang after this many seconds of the processor, or far more of the clock. Only in the first thread.

    After `process_seconds` of the processor, if not 0, the process ends: for code that no handler interrupts.
    """

    def ring(signum: int, frame: FrameType | None) -> None:
        raise Hang

    with handling(ring, signal.SIGALRM, signal.SIGVTALRM):
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds * WAITS)
        signal.setitimer(signal.ITIMER_PROF, process_seconds)
        try:
            yield
        finally:
            for timer in (signal.ITIMER_VIRTUAL, signal.ITIMER_REAL, signal.ITIMER_PROF):
                signal.setitimer(timer, 0)
