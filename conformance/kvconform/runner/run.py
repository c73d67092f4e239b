"""A run: the pytest plugin object that selects the tests, keeps the bench, counts, and makes the record."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest

from kvconform import plugin
from kvconform.diagnosis.diagnose import diagnosed
from kvconform.runner.journal import Journal
from kvconform.runner.pool import FEWEST, Judges
from kvconform.runner.progress import Progress, short
from kvconform.runner.record import kept, record
from kvconform.runner.tally import Tally
from kvconform.runner.under_test import Bench
from kvconform.worker import memory
from kvconform.worker.client import Worker, python_worker
from kvspec.contract import CHAPTERS
from kvspec.errors import BadInput
from kvspec.reading import clauses
from kvspec.reading.clauses import Clause
from kvspec.records.run import Record
from kvspec.registry import CACHES

QUICK, QUICK_START = 2.0, 20.0
"""Seconds for one operation, and for a worker to start, once all is judged and failures are diagnosed."""


class Writes(Protocol):
    """What keeps the events of a run: its journal, or in a judge what tells the run."""

    def write(self, event: str, **said: Any) -> None:
        """One event."""

    def close(self) -> None:
        """Nothing more will be written."""


@dataclass(frozen=True)
class Settings:
    """What to run. `command` starts a process adapter; without it `adapter` names a Python one."""

    adapter: str
    command: tuple[str, ...] = ()
    traces: int = 60
    seed: int = 0
    chapters: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    level: str | None = None
    report: Path | None = None
    deadline: float = 20.0
    memory_limit: int = 4 << 30
    processes: int = 1
    """How many judge at once, each with a worker of its own."""

    @property
    def argv(self) -> list[str]:
        """How the worker is started."""
        return list(self.command) or python_worker(self.adapter)

    def selected(self) -> dict[str, Clause]:
        """The clauses selected. Raises BadInput for a chapter or clause that does not exist."""
        known = clauses.index()
        for name in self.chapters:
            _known("chapter", name, CHAPTERS)
        for name in self.clauses:
            _known("clause", name, tuple(known))
        chapters = self.chapters or CHAPTERS
        return {i: c for i, c in known.items() if c.chapter in chapters and (not self.clauses or i in self.clauses)}


def _known(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        shown = ", ".join(known) if len(known) < 10 else f"{known[0]} to {known[-1]}; see `kvconform list`"
        raise BadInput(f"unknown {what} {name!r}; known: {shown}")


class Run:
    """Registered with pytest. `record` is there once the session has ended."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.selected = settings.selected()
        self.journal: Writes = Journal(settings.report)
        self.total = Tally()
        self.record: Record | None = None
        self.interrupted = False
        self._started, self._clock = datetime.now(UTC), time.monotonic()
        self._progress = Progress()
        self._held = (0, 0)
        self.worker = Worker(settings.argv, deadline=settings.deadline, memory_limit=settings.memory_limit)
        try:
            self.adapter = self.worker.describe()
            for name in self.adapter.known:
                _known(f"clause in what {self.adapter.name} declares as known,", name, tuple(clauses.index()))
        except BaseException:
            self.close()
            raise
        if settings.level == "visible":
            self.adapter = self.adapter.at_most("visible")
        self.bench = Bench(self.worker, self.adapter, settings.traces, settings.seed)
        about = self.about(partial=True, reason="the run was cut short: this was made from its journal")
        self.journal.write("start", adapter=self.adapter.to_json(), about=about, selected=list(self.selected))

    def close(self) -> None:
        """End the worker and the journal."""
        self.worker.close()
        self.journal.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Let the fixture find this run."""
        config.stash[plugin.RUN] = self

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep what the adapter declares and the selection asks for."""
        kept = [i for i in items if self._wanted(i)]
        dropped = [i for i in items if i not in kept]
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept
        self._progress.total = len(kept)

    def _wanted(self, item: pytest.Item) -> bool:
        marks = list(item.iter_markers("kv_needs"))
        if not marks:
            return "bench" not in getattr(item, "fixturenames", ())
        needs = {p for m in marks for p in m.args}
        clause = next((m.kwargs["clause"] for m in marks if "clause" in m.kwargs), None)
        chapter = item.path.stem.removeprefix("test_")
        chapters = {"honesty", *(c.chapter for c in self.selected.values())}
        if set(self.selected) == set(clauses.index()) and set(CACHES) & set(self.adapter.chapters):
            chapters.add("system")
        asked = clause in self.selected if clause else chapter in chapters
        return asked and needs <= set(self.adapter.chapters)

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Have the tests judged by several processes where that is worth it; else pytest's own loop does it."""
        processes = min(self.settings.processes, len(session.items) // FEWEST)
        if processes < 2 or session.testsfailed or session.config.option.collectonly:
            return None
        Judges(self, session.items, session.config).judge(processes)
        return True

    def judging(self, test: str) -> Iterator[Bench]:
        """The bench for one test; what it showed is counted and written down however the test ends."""
        try:
            with self.bench.judging(test) as tally:
                yield self.bench
        finally:
            self.journal.write("judged", test=test, tally=tally.to_json())
            self.total.merge(tally)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Show progress."""
        self._progress.at(short(nodeid), self.bench.operations)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that broke for another reason than a difference is the harness's failure."""
        if report.failed and "Differs" not in str(report.longrepr):
            self.total.problems.append(f"harness: {short(report.nodeid)}: {_last_line(str(report.longrepr))}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module of the suite that does not load is the harness's failure."""
        if report.failed:
            self.total.problems.append(f"harness: {report.nodeid}: {_last_line(str(report.longrepr))}")

    def pytest_keyboard_interrupt(self) -> None:
        """Keep what was judged so far."""
        self.interrupted = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Make the record."""
        self._progress.end()
        self._diagnose()
        about = self.about(self.interrupted, "interrupted" if self.interrupted else "")
        self.record = record(self.total, self.adapter, self.selected, about)
        self.journal.write("end", about=about)
        self.close()

    def _diagnose(self) -> None:
        """Ask which known bugs answer as the adapter does; not when somebody waits for the end."""
        failures = [] if self.interrupted else kept(self.total)
        if not failures:
            return
        worker = self.worker
        worker.deadline = min(QUICK, worker.deadline)
        worker.start_deadline = min(QUICK_START, worker.start_deadline)
        with suppress(KeyboardInterrupt):
            found = Tally(diagnosis=diagnosed(failures, lambda t: self.bench.run(t, past=True), self.adapter))
            self.journal.write("judged", test="diagnosis", tally=found.to_json())
            self.total.merge(found)

    def about(self, partial: bool, reason: str) -> dict[str, Any]:
        """What the record tells of the run itself."""
        s = self.settings
        return {
            "started": self._started.isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self._clock, 3),
            "partial": partial,
            "partial_reason": reason,
            "command": ["--", *s.command] if s.command else [s.adapter],
            "selection": {
                "chapters": list(s.chapters or CHAPTERS),
                "clauses": list(s.clauses),
                "traces": s.traces,
                "seed": s.seed,
                "level": s.level,
            },
            "memory": self._memory(),
        }

    def held(self, parent: int, child: int) -> None:
        """Note how many bytes a judge and its worker held resident."""
        self._held = max(self._held[0], parent), max(self._held[1], child)

    def _memory(self) -> dict[str, int]:
        """The most that one process of each sort held."""
        return {
            "parent": max(self._held[0], memory.peak()),
            "child": max(self._held[1], self.worker.peak()),
        }


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return (errors or lines or [""])[0][:300]
