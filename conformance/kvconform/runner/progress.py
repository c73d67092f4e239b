"""What a run writes to standard error while it judges: how far it is, and each clause that breaks, at once."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence

from kvconform.message import LiveLine, tell
from kvconform.runner.verdict.tally import CheckResult, source_of
from kvreports import terminal
from kvspec.contract import Description
from kvspec.records.run import Failure

EVERY = 5.0
"""Seconds between lines of progress where the output is no terminal."""

FORESEES = 3.0
"""Seconds after which the time that remains is estimated."""

EXAMPLE = 6
OPERATIONS = {"cover": 2400, "explore": 510, "walk": 280, "large": 150, "law": 150, "geometry": 60}
"""Operations of a check in a whole run, by the source of its traces, and of a worked example: three of four checks
are such. They serve until this run tells how many it has."""

TELLS = 3
"""Checks of a source after which their operations are known."""


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
        self._left, self._judged, self._did = Counter[str](), Counter[str](), Counter[str]()
        self._told, self._quiet = set[str](), quiet
        self._line, self._began = LiveLine(EVERY, quiet), time.monotonic()
        if not quiet:
            tell_device(adapter)

    def expect(self, checks: Sequence[str]) -> None:
        """These checks are to come."""
        self.total += len(checks)
        self._left.update(map(source_of, checks))

    def ended(self, result: CheckResult) -> None:
        """A check has ended: tell which clauses it is the first to see broken, and how far the run is."""
        self.done, self.operations = self.done + 1, self.operations + result.operations
        self._note(source_of(result.check), result.operations)
        self.failed += bool(result.difference or result.error)
        for failure in (f for f in result.tally.failures if not f.expected):
            self._tell(failure, result.check)
        if result.error:
            self._print(f"HARNESS_ERROR in {result.check}:\n{result.error}")
        self._line.show(f"{self._standing()}: {result.check}, {self.operations} operations")

    def _note(self, source: str, operations: int) -> None:
        self._left[source] -= 1
        self._judged[source] += 1
        self._did[source] += operations

    def _to_come(self) -> float:
        """Estimate the operations that are left: a slow engine takes its time by these."""
        return sum(count * self._each(source) for source, count in self._left.items())

    def _each(self, source: str) -> float:
        judged = self._judged[source]
        return self._did[source] / judged if judged >= TELLS else OPERATIONS.get(source, EXAMPLE)

    def _standing(self) -> str:
        """How far it is: checks, time gone, time left, failures."""
        gone = time.monotonic() - self._began
        failed = f", {self.failed} failed" if self.failed else ""
        to_come = self._to_come()
        known = gone > FORESEES and 2 * self.operations >= to_come
        about = f", about {_clock(gone * to_come / max(1, self.operations))} left" if known else ""
        return f"[{self.done:3d}/{self.total}] {_clock(gone)}{about}{failed}"

    def _tell(self, failure: Failure, check: str) -> None:
        new = [clause for clause in failure.clauses if clause not in self._told]
        self._told |= set(new)
        if new and not self._quiet:
            message = f"{failure.verdict} {', '.join(new)} in {check}: {failure.message}"
            self._print(f"{message}\n  {failure.words}")

    def _print(self, text: str) -> None:
        self.end()
        terminal.write(sys.stderr, f"{text}\n")

    def end(self) -> None:
        """Leave the line."""
        self._line.clear()


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
