"""`kvconform run`: pytest underneath, with its own settings and nobody else's plugins."""

from __future__ import annotations

import contextlib
import os
import sys
from argparse import Namespace
from pathlib import Path

import pytest

import kvconform.suite
from kvconform import plugin
from kvconform.runner import output
from kvconform.runner.run import Run, Settings
from kvconform.worker.client import WorkerFailure
from kvspec import trace
from kvspec.errors import BadInput
from kvspec.records.run import Record

SUITE = Path(kvconform.suite.__file__).parent
MOST = 4
"""Processes that judge where nobody says how many: each worker holds a device of its own, and memory."""


def main(options: Namespace) -> int:
    """Judge an adapter; print the result, leave the report."""
    settings = Settings(
        options.adapter or Path(options.process[0]).name,
        tuple(options.process),
        options.traces,
        options.seed,
        tuple(options.chapter),
        tuple(options.clause),
        options.level,
        Path(options.report) if options.report else None,
        options.deadline,
        options.memory << 20,
        options.processes or min(MOST, os.cpu_count() or 1),
    )
    run = started(settings)
    try:
        _pytest(run)
    finally:
        run.close()
    if run.record is None:
        raise BadInput("the suite did not run; pytest's own message stands above")
    page = _leave(run.record, settings.report)
    sys.stdout.write(output.shown([run.record], options.format))
    sys.stdout.flush()
    if page is not None:
        sys.stderr.write(f"\nkvconform: report at {page}\n")
    return 130 if run.interrupted else run.record["exit_status"]


def started(settings: Settings) -> Run:
    """A run whose worker answers. Raises BadInput, CannotRun."""
    try:
        return Run(settings)
    except WorkerFailure as e:
        raise BadInput(f"{settings.adapter}: its worker does not start: {e.verdict}: {e}") from None


def _pytest(run: Run) -> None:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ.pop("PYTEST_ADDOPTS", None)
    arguments = [str(SUITE), "-c", str(SUITE / "pytest.ini"), "--rootdir", str(SUITE), "-q", "--noconftest"]
    arguments += ["-p", "no:cacheprovider", "-p", "no:terminalreporter"]
    if run.settings.report is not None:
        arguments += ["--junitxml", str(run.settings.report / "junit.xml")]
    with contextlib.redirect_stdout(sys.stderr):
        pytest.main(arguments, plugins=[plugin, run])


def _leave(record: Record, folder: Path | None) -> Path | None:
    """Write the report; gives its page."""
    if folder is None:
        return None
    page = output.write(record, folder)
    for old in (folder / "failures").glob("*.json"):
        old.unlink()
    for i, failed in enumerate(record["failures"]):
        name = (failed["clauses"] or ["trace"])[0]
        output.leave(
            folder / "failures" / f"{i + 1:02d}-{name}.json", trace.dumps(trace.from_json(failed["trace"]))
        )
    return page
