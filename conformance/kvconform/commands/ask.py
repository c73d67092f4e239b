"""`kvconform ask ENGINE DIR`: asks a whole engine that loads a probe, and tells what its queries saw."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kvadapters.probe.asked import MOST_TOKENS, Failure, Verdict, asked
from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.engines import PACKAGES, loaded
from kvadapters.probe.model import Model
from kvadapters.probe.reader.precision import Precision
from kvconform.runner.record import output
from kvconform.version import SUITE_VERSION
from kvreports import json_file
from kvspec import SPEC_VERSION
from kvspec.reading import clauses
from kvspec.records.asked import AskedFailure, AskedRecord
from kvspec.records.document import Version
from kvspec.records.serving import ServingPrecision, ServingProbe

NAME = "asked.json"
"""The file of the record."""


def main(options: Namespace) -> int:
    """Print the verdict, and write the record; return 1 if something is wrong, 3 if it cannot be written. Raises
    BadInput or CannotRun."""
    began, started = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    probe, precision = Probe.load(options.folder), Precision(options.dtype, options.rows)
    model = loaded(options.engine, options.folder, options.dtype)
    verdict = asked(probe, model, precision, options.seed, MOST_TOKENS)
    print(verdict.told())
    made = record(options, probe, model, precision, verdict, started, time.monotonic() - began)
    unwritten = output.written(lambda: _write(made, Path(options.report))) if options.report else 0
    return unwritten or int(bool(verdict.failures))


def record(
    options: Namespace,
    probe: Probe,
    model: Model,
    precision: Precision,
    verdict: Verdict,
    started: str,
    seconds: float,
) -> AskedRecord:
    """The record of what was asked."""
    return AskedRecord(
        spec=Version(version=SPEC_VERSION, hash=clauses.digest()),
        suite=SUITE_VERSION,
        started=started,
        seconds=round(seconds, 3),
        engine=options.engine,
        version=_version(options.engine),
        abilities=sorted(model.abilities),
        probe=ServingProbe(**probe.record()),
        precision=ServingPrecision(**asdict(precision)),
        seed=options.seed,
        histories=verdict.histories,
        queries=verdict.queries,
        refused=verdict.refused,
        failures=[_failure(failure) for failure in verdict.failures],
        untold=list(verdict.untold),
    )


def _failure(failure: Failure) -> AskedFailure:
    lines = failure.judgement.told(4).splitlines()
    found = [line.strip() for line in lines if not line.startswith("cannot")]
    history = "; ".join(map(str, failure.history))
    return AskedFailure(clauses=list(failure.clauses), history=history, found=found)


def _version(engine: str) -> str:
    """The version of the package of an engine with a name of its own."""
    try:
        return version(PACKAGES[engine])
    except (KeyError, PackageNotFoundError):
        return ""


def _write(made: AskedRecord, folder: Path) -> Path:
    output.leave(folder / NAME, json_file.dumps(made))
    return folder / NAME
