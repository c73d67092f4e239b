"""pytest as a front end: `pytest --pyargs kvconform.checks --kv-adapter NAME` has one test for each check.

pytest's own options work on them: `-k "ring and example"`, `-x`, `--lf`, and `-n` of xdist. `--kv-report DIR`
writes the record of the checks that were judged.

The plugin loads in every pytest run of an environment that has kvconform, so it imports nothing heavy and does
nothing until an adapter is named.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kvconform.checks.check import Check
    from kvconform.runner.run import Run
    from kvconform.runner.settings import Settings
    from kvconform.runner.under_test import AdapterUnderTest
    from kvconform.runner.verdict.tally import CheckResult

CHECKS = Path(__file__).parent / "checks"
"""The folder that stands for the suite."""

SUITE = "kvconform.checks"
"""What the ids of its tests begin with, wherever it is installed."""

UNNAMED = "the suite judges an adapter: name it with --kv-adapter, or in [tool.kvconform] of pyproject.toml"

USUAL_TRACES = 60
"""Traces that each exploration draws, where nothing says how many."""

RUN: pytest.StashKey[Run] = pytest.StashKey()
REPORT: pytest.StashKey[Path | None] = pytest.StashKey()
"""The folder of the report."""
TAKEN: pytest.StashKey[str] = pytest.StashKey()
"""What was taken from the project's own settings, in a line."""
RESULT: pytest.StashKey[CheckResult] = pytest.StashKey()
"""What a test judged."""


class HarnessError(Exception):
    """The harness failed; says nothing about the adapter."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the suite."""
    group = parser.getgroup("kvconform", "conformance of a KV cache")
    group.addoption("--kv-adapter", metavar="NAME", help="adapter to judge: a name, or module:Class")
    group.addoption("--kv-traces", type=int, help=f"traces drawn by each exploration ({USUAL_TRACES})")
    group.addoption("--kv-seed", type=int, help="seed of the random traces (0)")
    group.addoption("--kv-known", metavar="FILE", type=Path, help="known deviations (kvconform.toml)")
    group.addoption("--kv-report", metavar="DIR", type=Path, help="folder for the record and its reports")


def pytest_configure(config: pytest.Config) -> None:
    """Begin a run if an adapter is named."""
    asked = config.getoption("pyargs", False) and any(str(a).startswith(SUITE) for a in config.args)
    if not (asked or config.getoption("--kv-adapter")):
        return
    from kvconform.runner.run import Run
    from kvconform.worker.process import WorkerFailure
    from kvspec.errors import BadInput, CannotRun

    name = ""
    try:
        said = _said(config)
        settings = _settings(said)
        name = settings.adapter
        run = Run(settings, None if _is_xdist_worker(config) else said.get("report"))
    except (BadInput, CannotRun, WorkerFailure) as e:
        raise pytest.UsageError(str(e) if str(e).startswith(name) else f"{name}: {e}") from None
    config.stash[RUN], config.stash[REPORT] = run, said.get("report")
    config.pluginmanager.register(_Results(run))


def _said(config: pytest.Config) -> dict[str, Any]:
    """What pytest's options say, and in their absence the project's own settings. Raises BadInput."""
    from kvconform.runner import project_file

    given = {name: config.getoption(f"--kv-{name}") for name in ("adapter", "traces", "seed", "known", "report")}
    given = {name: value for name, value in given.items() if value is not None}
    instead = {*given, "processes", "minutes", *(["command"] if "adapter" in given else [])}
    taken = {n: value for n, value in project_file.read(config.rootpath).items() if n not in instead}
    config.stash[TAKEN] = project_file.told(taken) if taken else ""
    return taken | {n: config.rootpath / taken[n] for n in project_file.PATHS if n in taken} | given


def _settings(said: dict[str, Any]) -> Settings:
    """The settings of the run. Raises BadInput, UsageError where no adapter is named."""
    from kvconform.generate.amounts import QUICK_COVERS, QUICK_TRACES
    from kvconform.runner.settings import Settings
    from kvconform.runner.verdict import known

    command, quick = tuple(said.get("command", ())), said.get("quick", False)
    if not (name := said.get("adapter") or (command and Path(command[0]).name)):
        raise pytest.UsageError(UNNAMED)
    more = {"deadline": said["deadline"]} if "deadline" in said else {}
    more |= {"memory_limit": said["memory"] << 20} if "memory" in said else {}
    return Settings(
        name,
        command,
        traces=said.get("traces", QUICK_TRACES if quick else USUAL_TRACES),
        seed=said.get("seed", 0),
        chapters=tuple(said.get("chapters", ())),
        clauses=tuple(said.get("clauses", ())),
        level="visible" if said.get("visible") else None,
        cover_traces=QUICK_COVERS if quick else 0,
        quick=quick,
        known=known.read(said.get("known")),
        **more,
    )


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what is judged, and with which settings."""
    run = config.stash.get(RUN, None)
    if run is None:
        return []
    return [f"kvconform: {line}" for line in (f"judging {run.settings.adapter}", config.stash[TAKEN]) if line]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the reports, and end the adapter."""
    run = config.stash.get(RUN, None)
    if run is None:
        return
    folder = config.stash.get(REPORT, None)
    if folder is not None and not _is_xdist_worker(config):
        _report(run, folder)
    run.close()


def _report(run: Run, folder: Path) -> None:
    from kvconform.checks.suite import selected, shut_out, suite
    from kvconform.runner.record import output

    asked = len(selected(run.settings, run.adapter))
    judged = len(run.results.keys() & suite().keys())
    if judged < asked:
        run.partial_reason = run.partial_reason or f"pytest judged {judged} of {asked} checks"
    run.shut_out(shut_out(run.settings, run.adapter))
    output.write(run.record(list(dict.fromkeys([*suite(), *run.results]))), folder)


def _is_xdist_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Let the folder of the checks stand for the suite."""
    return Suite.from_parent(parent, path=path, nodeid=SUITE) if path == CHECKS else None


class Suite(pytest.Directory):
    """The checks that suit the adapter."""

    def collect(self) -> Iterator[pytest.Item]:
        """One test a check, in the order of the suite."""
        run = self.config.stash.get(RUN, None)
        if run is None:
            raise self.CollectError(UNNAMED)
        from kvconform.checks.suite import selected

        for check in selected(run.settings, run.adapter):
            yield CheckItem.from_parent(self, name=check.id, check=check)


class CheckItem(pytest.Item):
    """One check as a test."""

    def __init__(self, *, check: Check, **settings: Any) -> None:
        super().__init__(**settings)
        self.check = check

    def runtest(self) -> None:
        """Judge it. Raises Differs, HarnessError, KeyboardInterrupt; ends as xfail where it differs as is known, as
        skipped where nothing could be judged."""
        from kvconform.checks.check import judge
        from kvconform.runner.under_test import Differs

        self.stash[RESULT] = result = judge(self.config.stash[RUN].under_test, self.check)
        if result.interrupted:
            raise KeyboardInterrupt
        if result.error:
            raise HarnessError(result.error)
        if result.difference:
            raise Differs(result.difference)
        if result.known:
            pytest.xfail(result.known)
        if not result.tally.judged:
            pytest.skip(result.unjudged)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The message says it all: a failure's trace with its drawing, or the harness's traceback."""
        return "\n\n".join([f"{excinfo.typename}: {excinfo.value}", *self._drawing()])

    def _drawing(self) -> Iterator[str]:
        """The drawing of the shortest trace that fails."""
        from kvreports.drawing.text import draw

        failures = self.stash[RESULT].tally.failures if RESULT in self.stash else []
        unknown = [f for f in failures if not f.expected]
        if unknown:
            yield draw(min(unknown, key=lambda f: len(f.steps)).steps)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it stands, and the heading of a failure."""
        return self.path, None, f"check {self.check.id}"


@pytest.fixture
def under_test(request: pytest.FixtureRequest) -> Iterator[AdapterUnderTest]:
    """The adapter under test, for checks of one's own; what they judge counts in the record."""
    run = request.config.stash.get(RUN, None)
    if run is None:
        raise pytest.UsageError(UNNAMED)
    from kvconform.runner.verdict.tally import CheckResult

    with run.under_test.judging(request.node.nodeid) as tally:
        yield run.under_test
    request.node.stash[RESULT] = CheckResult(request.node.nodeid, tally)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the report carry the judgements: xdist hands on nothing else from its processes."""
    report = yield
    result = item.stash.get(RESULT, None)
    if result is not None:
        report.kvconform = json.dumps([result.check, result.tally.to_json()])  # type: ignore[attr-defined]
        del item.stash[RESULT]
    return report


class _Results:
    """Takes what reports carry into the run."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test judged."""
        from kvconform.runner.verdict import tally
        from kvconform.runner.verdict.tally import CheckResult

        if hasattr(report, "kvconform"):
            check, judged = json.loads(report.kvconform)
            self.run.keep(CheckResult(check, tally.from_json(judged)))

    def pytest_keyboard_interrupt(self) -> None:
        """The record is of a part."""
        from kvconform.runner.run import INTERRUPTED

        self.run.partial_reason = INTERRUPTED
