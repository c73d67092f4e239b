"""Waits for what happens in other processes."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LONGEST = 60.0
"""Seconds after which it is not going to happen, on the busiest machine too."""


EACH = 0.02
"""Seconds between two looks."""


def soon(holds: Callable[[], object], seconds: float = LONGEST) -> bool:
    """Wait until it holds; whether it did. What held for a moment counts. Looks are counted, and no clock is read:
    a machine that was paused for a minute has not waited."""
    for _ in range(round(seconds / EACH)):
        if holds():
            return True
        time.sleep(EACH)
    return bool(holds())


@contextmanager
def heeding_interrupts() -> Iterator[None]:
    """A process of xdist, or one in the background of a shell, ignores SIGINT; here it raises KeyboardInterrupt."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
