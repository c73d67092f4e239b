"""The folder of a report: the record and its renderings, JUnit XML, and a trace for each failure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kvconform.runner import junit, output
from kvconform.runner.result import CheckResult
from kvreports import json_file
from kvspec import trace
from kvspec.errors import BadInput
from kvspec.records.run import Failure, Record


def write(record: Record, results: Iterable[CheckResult], folder: Path) -> Path:
    """Write all of it; give the page. Traces of the record that stood there before are deleted. Raises BadInput."""
    failures = folder / "failures"
    if failures.is_symlink():
        raise BadInput(f"{failures}: a link; a report writes into its own folder only")
    old = _traces(_earlier(folder))
    page = output.write(record, folder)
    output.leave(folder / "junit.xml", junit.dumps(results))
    new = _traces(record)
    for file in failures.glob("*.json"):
        if file.name in old and file.name not in new:
            file.unlink()
    for name, failed in new.items():
        output.leave(failures / name, trace.dumps(trace.from_json(failed.trace)))
    return page


def _traces(record: Record | None) -> dict[str, Failure]:
    """The names of the files of a record's failures."""
    failures = record.failures if record else []
    return {f"{i:02d}-{(failed.clauses or ['trace'])[0]}.json": failed for i, failed in enumerate(failures, 1)}


def _earlier(folder: Path) -> Record | None:
    """The record that a folder holds; none if it cannot be read."""
    try:
        return json_file.load(folder / "record.json", Record)
    except BadInput:
        return None
