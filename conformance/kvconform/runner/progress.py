"""What is said on standard error while a run judges."""

from __future__ import annotations

import sys
import time

EVERY = 5.0
"""Seconds between lines of progress where the output is no terminal."""


class Progress:
    """One line on standard error that moves on a terminal, and stands every few seconds elsewhere."""

    def __init__(self) -> None:
        self.total, self.done = 0, 0
        self._live, self._last = sys.stderr.isatty(), time.monotonic()

    def at(self, test: str, operations: int) -> None:
        """A test begins."""
        self.done += 1
        line = f"[{self.done:3d}/{self.total}] {test}, {operations} operations"
        if self._live:
            print(f"\r\x1b[K{line[:100]}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._last > EVERY:
            self._last = time.monotonic()
            print(line, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the line."""
        if self._live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def short(nodeid: str) -> str:
    """The name of a test without its folder."""
    return nodeid.rpartition("/")[2].removeprefix("test_").replace(".py::test_", " ")
