"""What a run writes to standard error while it judges: how far it is, and each clause that breaks, at once."""

from __future__ import annotations

import sys
import time

from kvconform.runner.result import CheckResult
from kvspec.contract import Description
from kvspec.records.run import Failure

EVERY = 5.0
"""Seconds between lines of progress where the output is no terminal."""

WIDEST = 100
"""Characters of a line of progress on a terminal."""


class Progress:
    """One line that is rewritten on a terminal, and printed again every few seconds elsewhere."""

    def __init__(self, adapter: Description) -> None:
        self.total, self.done, self.operations = 0, 0, 0
        self._told = set(adapter.known)
        self._live, self._last = sys.stderr.isatty(), time.monotonic()

    def ended(self, result: CheckResult) -> None:
        """A check has ended: tell which clauses it is the first to see broken, and how far the run is."""
        self.done, self.operations = self.done + 1, self.operations + result.operations
        for failure in (f for f in result.tally.failures if not f.expected):
            self._tell(failure, result.check)
        if result.error:
            self._print(f"HARNESS_ERROR in {result.check}:\n{result.error}")
        self._advance(f"[{self.done:3d}/{self.total}] {result.check}, {self.operations} operations")

    def _tell(self, failure: Failure, check: str) -> None:
        new = [clause for clause in failure.clauses if clause not in self._told]
        self._told |= set(new)
        if new:
            message = f"{failure.verdict} {', '.join(new)} in {check}: {failure.message}"
            self._print(f"{message}\n  {failure.words}")

    def _print(self, text: str) -> None:
        self.end()
        print(text, file=sys.stderr, flush=True)

    def _advance(self, line: str) -> None:
        if self._live:
            print(f"\r\x1b[K{line[:WIDEST]}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._last > EVERY:
            self._last = time.monotonic()
            print(line, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the line."""
        if self._live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
