"""The folder of a report: the record, its renderings, JUnit XML, SARIF, a badge, and a trace for each failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import UNSET

from kvconform.runner.record import junit, output, sarif
from kvreports import json_file
from kvreports.board.badge import badge
from kvreports.board.engines import Engine
from kvreports.run import replay
from kvspec import trace
from kvspec.errors import BadInput
from kvspec.records.run import Record


def write(record: Record, folder: Path) -> Path:
    """Write all of it; give the page. Traces of the record that stood there before are deleted. Raises BadInput."""
    failures = folder / replay.FOLDER
    if failures.is_symlink():
        raise BadInput(f"{failures}: is a link; a report writes only into its own folder")
    old = _files(_earlier(folder))
    page = output.write(record, folder)
    output.leave(folder / "junit.xml", junit.dumps(record))
    output.leave(folder / sarif.NAME, sarif.dumps(record))
    output.leave(folder / "badge.svg", badge(Engine(record, "", [])))
    new = _files(record)
    for file in failures.glob("*.json"):
        if f"{replay.FOLDER}/{file.name}" in old.keys() - new.keys():
            file.unlink()
    for name, document in new.items():
        output.leave(folder / name, trace.dumps(trace.from_json(document)))
    return page


def _files(record: Record | None) -> dict[str, dict[str, Any]]:
    """The traces of a record's failures, and those that have to run before them, by the names of their files."""
    files: dict[str, dict[str, Any]] = {}
    if record is None:
        return files
    for failed in record.failures:
        files[replay.file(failed, record)] = failed.trace
        if failed.after is not UNSET:
            files[replay.file(failed, record, replay.AFTER)] = failed.after.trace
    return files


def _earlier(folder: Path) -> Record | None:
    """The record that a folder holds; none if it cannot be read."""
    try:
        return json_file.load(folder / "record.json", Record)
    except BadInput:
        return None
