"""`kvconform board RECORD...`: the records of released engines as one board, with their known deviations."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from kvconform.message import tell
from kvconform.runner.record import output
from kvconform.runner.verdict import known
from kvconform.runner.verdict.known import KnownDeviation
from kvreports import json_file
from kvreports.board import html, markdown
from kvreports.board.badge import badge
from kvreports.board.engines import Board, Deviation, Engine, Unjudged
from kvreports.safe_text import cleaned_record
from kvspec.records.run import Failure, Record

NAMES = ("README.md", "board.html")
"""The files that are written."""

NOT_FILED = KnownDeviation(clause=(), reason="not filed yet", sort="not filed")


def main(options: Namespace) -> int:
    """Write the board and its page into a folder and return 0. Raises BadInput for a file that cannot be read."""
    folder = Path(options.out)
    found = replace(board([Path(p) for p in options.records], options.known, folder), spec=options.spec)
    for name, text in zip(NAMES, (markdown.render(found), html.render(found)), strict=True):
        output.leave(folder / name, text)
    for anchor, engine in zip(found.anchors, found.engines, strict=True) if options.badges else ():
        output.leave(Path(options.badges) / f"{anchor}.svg", badge(engine))
    tell(f"board at {folder / NAMES[1]}")
    return 0


def board(records: list[Path], file: Path | None, folder: Path) -> Board:
    """The board of these records, its addresses relative to a folder. Raises BadInput."""
    entries = known.read(file)
    beside = (file or known.FILE).parent
    engines = [_engine(path, entries, beside, folder) for path in records]
    unjudged = [Unjudged(u.engine, u.reason) for u in known.unjudged(file)]
    return Board(sorted(engines, key=lambda e: (e.name, e.record.started)), unjudged)


def _engine(path: Path, entries: tuple[KnownDeviation, ...], beside: Path, folder: Path) -> Engine:
    record = cleaned_record(json_file.load(path, Record))
    own = [k for k in entries if k.names(record.adapter.get("name", ""))]
    deviations = [_deviation(f, own, beside, folder) for f in record.failures]
    return Engine(record, _address(path, folder), sorted(deviations, key=lambda d: d.gravity))


def _deviation(failure: Failure, entries: list[KnownDeviation], beside: Path, folder: Path) -> Deviation:
    entry = next((k for k in entries if k.because in failure.known.values() or k.is_outcome(failure)), NOT_FILED)
    script, draft = beside / f"{entry.script}.py", beside / "drafts" / f"{entry.script}.md"
    bug = " ".join((entry.script, *entry.models)) if entry.is_model else entry.reason
    there = [_there(path, folder) for path in (script, draft)]
    return Deviation(failure, entry.sort, entry.reason, entry.link, there[0], there[1], bug)


def _there(path: Path, folder: Path) -> str:
    return _address(path, folder) if path.is_file() else ""


def _address(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()
