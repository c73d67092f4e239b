"""Handles signals during a block of code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer, get_ident
from time import monotonic
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], None]

AGAIN = 0.05
"""Seconds after which a signal is sent again if its exception was lost."""


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle a signal as Ctrl-C is handled. Raises KeyboardInterrupt."""
    raise KeyboardInterrupt


class _Insisting:
    """A handler. If Python drops its exception, the signal comes again."""

    def __init__(self, handler: Handler, deaf: float) -> None:
        self._handler, self._deaf, self._hears = handler, deaf, 0.0
        self._thread, self._ignored = get_ident(), sys.unraisablehook
        self._raised = dict[int, BaseException]()
        self._timers = list[Timer]()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal. Raises what the handler raises."""
        if monotonic() < self._hears:
            return
        try:
            self._handler(number, frame)
        except BaseException as e:
            self._raised[number], self._hears = e, monotonic() + self._deaf
            raise

    def dropped(self, lost: Any) -> None:
        """Send a signal again if this is what its handler raised; tell of anything else as before."""
        numbers = [number for number, e in self._raised.items() if e is lost.exc_value]
        for number in numbers:
            self._hears = 0.0
            self._timers.append(Timer(AGAIN, signal.pthread_kill, (self._thread, number)))
            self._timers[-1].start()
        if not numbers:
            self._ignored(lost)

    def end(self) -> None:
        """Send nothing again from now on."""
        for timer in self._timers:
            timer.cancel()


@contextmanager
def handling(handler: Handler, *signals: signal.Signals, deaf: float = 0.0) -> Iterator[None]:
    """Handle these signals, then restore the earlier handlers. Works only in a process's first thread.

    Python drops an exception that a handler raises in a finaliser or in a callback of the garbage collector.
    Such a signal is sent again. For `deaf` seconds after one that raised, others are ignored.
    """
    insisting = _Insisting(handler, deaf)
    before = [(s, signal.signal(s, insisting)) for s in signals]
    ignored, sys.unraisablehook = sys.unraisablehook, insisting.dropped
    try:
        yield
    finally:
        sys.unraisablehook = ignored
        insisting.end()
        for number, old in before:
            signal.signal(number, old)
