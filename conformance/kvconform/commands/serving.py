"""`kvconform run --server ADDRESS` and `--engine NAME`: judges a whole serving engine by requests."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from msgspec import convert

from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.reader.precision import Precision
from kvadapters.serving.driver import Driver
from kvadapters.serving.engines import opened
from kvadapters.serving.http import Server, starting
from kvconform.commands.arguments import refuse_of_adapters
from kvconform.message import LiveLine, tell
from kvconform.runner.record import output
from kvconform.serving.run import FIRST, SUSPECT, Run
from kvconform.serving.verdict import exit_status, verdicts
from kvconform.version import SUITE_VERSION
from kvspec import SPEC_VERSION
from kvspec.errors import BadInput, CannotRun
from kvspec.records.document import Version
from kvspec.records.serving import ServingEngine, ServingPrecision, ServingProbe, ServingRecord
from kvspec.serving import clauses

PATIENCE = 60.0
"""Seconds in which a server may start."""
EVERY = 5.0
"""Seconds between lines of progress where the output is no terminal."""
WAITING = "waiting for"


def main(options: Namespace) -> int:
    """Judge a serving engine; print the result and write the report. Raises BadInput or CannotRun."""
    refuse_of_adapters(options)
    if not options.model:
        raise BadInput("name the folder of the probe that the engine has loaded: --model DIR")
    probe, precision = Probe.load(options.model), Precision(options.dtype, options.rows)
    progress = _Progress(options.quiet)
    driver = _driver(options, probe, progress)
    began, started = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    try:
        run = Run(probe, driver, precision, options.seed, progress.tell)
        run.go(options.requests, *([options.maxfail] if options.maxfail else []))
        progress.line.clear()
        record = _record(run, started, time.monotonic() - began)
    finally:
        driver.close()
    folder = Path(options.report) if options.report else None
    unwritten = output.deliver([record], options.format, partial(output.write, record, folder) if folder else None)
    if run.gone:
        raise CannotRun(f"{run.gone}. What was found until then is kept")
    return 130 if run.partial else unwritten or record.exit_status


def _driver(options: Namespace, probe: Probe, progress: _Progress) -> Driver:
    if options.server:
        _await(options.server, progress)
        return Server(options.server, options.model, probe, options.declare)
    return opened(options.engine, options.model, options.dtype, options.rows, options.declare)


def _await(address: str, progress: _Progress) -> None:
    """Wait for a server that was started just now, and say so once."""
    until, told = time.monotonic() + PATIENCE, False
    while time.monotonic() < until and (why := starting(address)):
        if not told:
            progress.tell(f"{WAITING} {address} ({why}), at most {PATIENCE:.0f} s")
        told = True
        time.sleep(0.2)


def _record(run: Run, started: str, seconds: float) -> ServingRecord:
    declared, judged = run.driver.declared, verdicts(run)
    engine = {name: getattr(declared, name) for name in ("name", "version", "flags", "tells")}
    return ServingRecord(
        spec=Version(version=SPEC_VERSION, hash=clauses.digest()),
        suite=SUITE_VERSION,
        started=started,
        seconds=round(seconds, 3),
        engine_seconds=round(run.player.seconds, 3),
        partial=run.partial,
        engine=convert({**engine, **declared.sizes(), "can": sorted(declared.can)}, ServingEngine),
        probe=ServingProbe(**run.probe.record()),
        precision=ServingPrecision(**asdict(run.precision)),
        seed=run.seed,
        asked={**run.player.counts, "requests": run.asked, "queries": run.judge.queries},
        counted=dict(run.driver.counts()),
        clauses=judged,
        failures=run.failures,
        wrong_histories=run.wrong_histories,
        untold=dict(run.judge.untold),
        exit_status=exit_status(judged, run.wrong_histories),
    )


class _Progress:
    """How far a run is, in one line; what fails, at once."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.line = quiet, LiveLine(EVERY, quiet, tell)

    def tell(self, line: str) -> None:
        """Tell how far the run is; what has failed and the first verdict stay."""
        if not line.startswith(("SERVE-", FIRST, SUSPECT, WAITING)):
            self.line.show(line)
        elif not self.quiet:
            self.line.clear()
            tell(line)
