"""Handles signals during a block of code."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None]


@contextmanager
def handling(handler: Handler, *signals: signal.Signals) -> Iterator[None]:
    """Handle these signals, then restore the earlier handlers. Works only in a process's first thread."""
    before = [(s, signal.signal(s, handler)) for s in signals]
    try:
        yield
    finally:
        for number, old in before:
            signal.signal(number, old)
