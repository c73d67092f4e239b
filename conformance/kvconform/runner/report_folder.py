"""The folder of a report: the record and its renderings, JUnit XML, and a trace for each failure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kvconform.runner import junit, output
from kvconform.runner.result import CheckResult
from kvspec import trace
from kvspec.records.run import Record


def write(record: Record, results: Iterable[CheckResult], folder: Path) -> Path:
    """Write all of it; give the page. Raises BadInput."""
    page = output.write(record, folder)
    output.leave(folder / "junit.xml", junit.dumps(results))
    for old in (folder / "failures").glob("*.json"):
        old.unlink()
    for i, failed in enumerate(record.failures):
        name = (failed.clauses or ["trace"])[0]
        output.leave(folder / "failures" / f"{i + 1:02d}-{name}.json", trace.dumps(trace.from_json(failed.trace)))
    return page
