"""Signals handled for a while."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None]


@contextmanager
def handling(handler: Handler, *signals: signal.Signals) -> Iterator[None]:
    """Give these signals to a handler; afterwards to whoever had them before. Only in a process's first thread."""
    before = [(s, signal.signal(s, handler)) for s in signals]
    try:
        yield
    finally:
        for number, old in before:
            signal.signal(number, old)
