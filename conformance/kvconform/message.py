"""Messages to the person at the terminal: a line each on standard error, so that standard output is the result."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

REWRITE = "\r\x1b[K"
"""Overwrites the line that a terminal shows last."""

WIDEST = 100
"""The most characters of a line that is overwritten."""


def tell(line: str, command: str = "") -> None:
    """Write `kvconform: line` to standard error, or `kvconform COMMAND: line`, at once."""
    name = f"kvconform {command}" if command else "kvconform"
    sys.stderr.write(f"{name}: {line}\n")
    sys.stderr.flush()


def _plainly(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _width() -> int:
    """What fits on one line of the terminal: a line that is wrapped cannot be overwritten. It may be resized."""
    try:
        return min(WIDEST, os.get_terminal_size(sys.stderr.fileno()).columns - 1)
    except (OSError, ValueError):
        return WIDEST


class LiveLine:
    """One line on standard error: a terminal shows the newest, any other reader gets one every few seconds."""

    def __init__(self, every: float, quiet: bool = False, write: Callable[[str], None] = _plainly) -> None:
        """`every` counts seconds. `write` writes a line where standard error is no terminal. Where it is `quiet`,
        nothing is written."""
        self._every, self._quiet, self._write = every, quiet, write
        self._live, self._last = sys.stderr.isatty() and not quiet, time.monotonic()

    def show(self, line: str) -> None:
        """Show this line in place of the one before it."""
        if self._live:
            print(f"{REWRITE}{line[: _width()]}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._last > self._every and not self._quiet:
            self._last = time.monotonic()
            self._write(line)

    def clear(self) -> None:
        """Take the line away, so that other text begins there."""
        if self._live:
            print(REWRITE, end="", file=sys.stderr, flush=True)
