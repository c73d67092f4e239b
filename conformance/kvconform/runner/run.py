"""A run: collects the results of checks, keeps them through an interruption, and makes the record."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from kvconform.runner.journal import Journal
from kvconform.runner.progress import Progress
from kvconform.runner.record.record import kept, record
from kvconform.runner.settings import Settings
from kvconform.runner.under_test import opened
from kvconform.runner.verdict.known import reasons
from kvconform.runner.verdict.tally import CheckResult, Tally, source_of
from kvconform.runner.verdict.verdict import Evidence, verdict_on
from kvconform.worker import memory
from kvspec.reading.clauses import index
from kvspec.records.run import Record

QUICK, QUICK_START = 2.0, 20.0
"""Seconds for one operation, and for a worker to start, once all is judged and failures are diagnosed."""

INTERRUPTED = "interrupted"


class Run:
    """One run on one adapter. `report` is the folder of its journal; without one it keeps none."""

    def __init__(self, settings: Settings, report: Path | None = None, quiet: bool = False) -> None:
        """Start the worker; a quiet run tells of no progress. Raises BadInput, CannotRun, WorkerFailure."""
        self.settings, self.selected = settings, settings.selected()
        self.results: dict[str, CheckResult] = {}
        self.partial_reason = ""
        """Why the run is not whole; empty if it is."""
        self._problems: list[str] = []
        self._shut_out = Tally()
        self._started, self._clock = datetime.now(UTC), time.monotonic()
        self.journal = Journal(report)
        try:
            self.under_test = opened(settings)
        except BaseException:
            self.journal.close()
            raise
        self.adapter, self.progress = self.under_test.adapter, Progress(self.under_test.adapter, quiet)
        about = self._about("the run was cut short: this was made from its journal")
        self.journal.write(
            "start",
            adapter=self.adapter.to_json(),
            takes=self.adapter.takes,
            about=about,
            selected=list(self.selected),
        )

    @property
    def interrupted(self) -> bool:
        """Whether the user interrupted it."""
        return self.partial_reason == INTERRUPTED

    def close(self) -> None:
        """End the worker and the journal."""
        self.under_test.worker.close()
        self.journal.close()

    def shut_out(self, checks: Mapping[str, str]) -> None:
        """Write down the checks that the adapter's claims do not allow, each with what is missing."""
        self._shut_out = Tally(shut_out=dict(checks))
        self.journal.write("judged", test="claim", tally=self._shut_out.to_json())

    def collect(self, results: Iterable[CheckResult], checks: Sequence[str]) -> None:
        """Take in results until the last of `checks`, until enough of them failed, or until it is interrupted."""
        self.progress.expect(checks)
        left = dict.fromkeys(checks)
        try:
            for result in results:
                self.keep(result)
                self.progress.ended(result)
                left.pop(result.check, None)
                if reason := self._enough():
                    self.partial_reason = f"{reason}{_told(left)}"
                    break
        except KeyboardInterrupt:
            self.partial_reason = INTERRUPTED
        except BrokenExecutor as e:
            self.partial_reason = str(e)
            self._problems.append(f"harness: {e}")
        self.progress.end()

    def _enough(self) -> str:
        """Why the run stops here, as it was asked to; empty if it goes on."""
        failed, minutes = self.settings.max_failures, self.settings.minutes
        if failed and self.progress.failed >= failed:
            return f"stopped after {self.progress.failed} failed, as it was asked to"
        if minutes and time.monotonic() - self._clock > 60 * minutes:
            return f"stopped after {minutes:g} minutes, as it was asked to"
        return ""

    def keep(self, result: CheckResult) -> None:
        """Write down what a check showed. A check that is judged again takes the place of the first time."""
        self.journal.write("judged", test=result.check, tally=result.tally.to_json())
        self.results[result.check] = result

    @property
    def broken(self) -> bool:
        """Whether something failed so far that no known deviation explains."""
        return any(result.tally.broken for result in self.results.values())

    def not_exercised(self) -> list[str]:
        """Clauses that bind the adapter, and that nothing has exercised yet in what they are about."""
        evidence = partial(Evidence, tally=self._total(self.results), adapter=self.adapter, partial=False)
        return [i for i, c in self.selected.items() if verdict_on(evidence(c)).name == "NOT_RUN"]

    def chapters_with_rows(self) -> set[str]:
        """The chapters of which something was exercised after rows were taken."""
        clauses = set[str]().union(*(result.tally.with_rows for result in self.results.values()))
        return {c for clause in clauses for c in index()[clause].chapters}

    def record(self, checks: Sequence[str]) -> Record:
        """Diagnose the failures and make the record, put together in the order of the checks."""
        total = self._total(checks)
        total.problems += self._problems
        total.merge(self._shut_out)
        self._diagnose(total)
        about = self._about(self.partial_reason)
        self.journal.write("end", about=about)
        return record(total, self.adapter, self.selected, about)

    def _total(self, checks: Iterable[str]) -> Tally:
        total = Tally()
        for check in checks:
            if check in self.results:
                total.merge(self.results[check].tally)
        return total

    def _diagnose(self, total: Tally) -> None:
        """Ask which known bugs answer as the adapter does. Skip it after an interruption, because the user
        waits."""
        failures = [] if self.interrupted else [f for f in kept(total) if not f.expected]
        if not failures:
            return
        from kvconform.diagnosis.diagnose import diagnose  # reads all known bugs, which most runs do not need
        from kvconform.runner.proposing import proposed

        worker = self.under_test.worker
        worker.deadline = min(QUICK, worker.deadline)
        worker.start_deadline = min(QUICK_START, worker.start_deadline)
        with suppress(KeyboardInterrupt):
            named = diagnose(failures, lambda trace: self.under_test.run(trace, past=True), self.adapter)
            found = Tally(diagnosis=named, entries=proposed(failures, named, self.under_test))
            self.journal.write("judged", test="diagnosis", tally=found.to_json())
            total.merge(found)

    def _about(self, partial_reason: str) -> dict[str, Any]:
        """What the record tells of the run itself."""
        s = self.settings
        return {
            "started": self._started.isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self._clock, 3),
            "partial": bool(partial_reason),
            "partial_reason": partial_reason,
            "command": ["--", *s.command] if s.command else [s.adapter],
            "selection": s.to_json() | self._known(),
            "memory": self._memory(),
        }

    def _known(self) -> dict[str, object]:
        """The clauses that are known to break, for the record; nothing where there are none."""
        known = reasons(self.under_test.known)
        return {"known": known} if known else {}

    def _memory(self) -> dict[str, int]:
        """The most that one process of each sort held."""
        held = [result.memory for result in self.results.values()]
        return {
            "parent": max([memory.peak(), *(parent for parent, _ in held)]),
            "child": max([self.under_test.worker.peak(), *(child for _, child in held)]),
        }


def _told(left: Iterable[str]) -> str:
    """How many checks were not judged, by the source of their traces."""
    counts = Counter(source_of(check) or check for check in left)
    told = ", ".join(f"{source} {count}" for source, count in counts.items())
    return f"; checks left: {told}" if told else ""
