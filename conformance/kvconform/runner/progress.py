"""What a run writes to standard error while it judges: how far it is, and each clause that breaks, at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from kvconform.message import LiveLine, tell
from kvconform.runner.record import colours
from kvconform.runner.verdict.result import CheckResult
from kvspec.contract import Description
from kvspec.records.run import Failure

EVERY = 5.0
"""Seconds between lines of progress where the output is no terminal."""

FORESEES = 3.0
"""Seconds after which the time that remains is estimated."""

EXAMPLE = 0.006
SECONDS = {"cover": 0.74, "explore": 0.42, "walk": 0.3, "large": 0.42, "law": 0.11}
"""Seconds that a check of the reference took on average, by the source of its traces. Of any other adapter only
their ratios matter: three of four checks are worked examples, which take a fortieth of the time."""


def tell_device(adapter: Description, *more: str) -> None:
    """Tell on which device an adapter works, and why if its details say so. `more`: other details to tell."""
    if not adapter.device:
        return
    why = adapter.details.get("why")
    tell(f"device: {adapter.device}{f' ({why})' if why else ''}")
    for name in more:
        if name in adapter.details:
            tell(f"{name}: {adapter.details[name]}")


class Progress:
    """The device, then one line that is rewritten on a terminal, and printed again every few seconds elsewhere."""

    def __init__(self, adapter: Description, quiet: bool = False) -> None:
        self.total, self.done, self.operations, self.failed = 0, 0, 0, 0
        self._work, self._work_done = 0.0, 0.0
        self._told, self._quiet = set[str](), quiet
        self._line, self._began = LiveLine(EVERY, quiet), time.monotonic()
        if not quiet:
            tell_device(adapter)

    def expect(self, checks: Sequence[str]) -> None:
        """These checks are to come."""
        self.total += len(checks)
        self._work += sum(map(_seconds, checks))

    def ended(self, result: CheckResult) -> None:
        """A check has ended: tell which clauses it is the first to see broken, and how far the run is."""
        self.done, self.operations = self.done + 1, self.operations + result.operations
        self._work_done += _seconds(result.check)
        self.failed += bool(result.difference or result.error)
        for failure in (f for f in result.tally.failures if not f.expected):
            self._tell(failure, result.check)
        if result.error:
            self._print(f"HARNESS_ERROR in {result.check}:\n{result.error}")
        self._line.show(f"{self._standing()}: {result.check}, {self.operations} operations")

    def _standing(self) -> str:
        """How far it is: checks, time gone, time left, failures."""
        gone = time.monotonic() - self._began
        failed = f", {self.failed} failed" if self.failed else ""
        left = _clock(gone * (self._work / self._work_done - 1))
        known = gone > FORESEES and self._work_done >= self._work / 3
        about = f", about {left} left" if known else ""
        return f"[{self.done:3d}/{self.total}] {_clock(gone)}{about}{failed}"

    def _tell(self, failure: Failure, check: str) -> None:
        new = [clause for clause in failure.clauses if clause not in self._told]
        self._told |= set(new)
        if new and not self._quiet:
            message = f"{failure.verdict} {', '.join(new)} in {check}: {failure.message}"
            self._print(f"{message}\n  {failure.words}")

    def _print(self, text: str) -> None:
        self.end()
        colours.write(sys.stderr, f"{text}\n")

    def end(self) -> None:
        """Leave the line."""
        self._line.clear()


def _seconds(check: str) -> float:
    """How long a check takes, by its id."""
    _, _, rest = check.partition("/")
    return SECONDS.get(rest.partition("/")[0], EXAMPLE)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
