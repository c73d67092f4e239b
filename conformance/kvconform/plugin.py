"""The pytest plugin: `pytest --pyargs kvconform.suite --kv-adapter NAME` is the same run as `kvconform run NAME`.

It loads in every pytest run of an environment that has kvconform, so it imports nothing heavy and does nothing
until an adapter is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kvconform.runner.run import Run

RUN: pytest.StashKey[Run] = pytest.StashKey()
"""Where a run is kept for the fixture."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the suite."""
    group = parser.getgroup("kvconform", "conformance of a KV cache")
    group.addoption("--kv-adapter", metavar="NAME", help="adapter to judge: a name, or module:Class")
    group.addoption("--kv-traces", type=int, default=60, help="traces drawn by each exploration")
    group.addoption("--kv-seed", type=int, default=0, help="seed of what is drawn")
    group.addoption("--kv-report", metavar="DIR", type=Path, help="folder for the record and its reports")


def pytest_configure(config: pytest.Config) -> None:
    """Begin a run if an adapter was named here, and not by `kvconform run`."""
    config.addinivalue_line("markers", "kv_needs(*chapters, clause=None): chapters a test of the suite needs")
    name = config.getoption("--kv-adapter")
    if not name or RUN in config.stash:
        return
    from kvconform.runner.run import Run, Settings
    from kvspec.errors import BadInput, CannotRun

    report, traces = config.getoption("--kv-report"), config.getoption("--kv-traces")
    try:
        run = Run(Settings(name, traces=traces, seed=config.getoption("--kv-seed"), report=report))
    except (BadInput, CannotRun) as e:
        raise pytest.UsageError(str(e)) from None
    config.stash[RUN] = run
    config.pluginmanager.register(run, "kvconform-run")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the reports of a run that was begun here."""
    run = config.stash.get(RUN, None)
    if run is None or not config.getoption("--kv-adapter"):
        return
    run.close()
    if run.record is not None and run.settings.report is not None:
        from kvconform.runner.output import write

        write(run.record, run.settings.report)


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The bench of the adapter named, with a fresh tally for this test."""
    run = request.config.stash.get(RUN, None)
    if run is None:
        raise pytest.UsageError("the suite judges an adapter: name it with --kv-adapter")
    yield from run.judging(request.node.nodeid)
